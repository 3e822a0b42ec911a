"""Models and checkpoints from a hub: folders and file URLs, without a network."""

import hashlib
import urllib.error
import zipfile

import pytest
import rushlight as torch
from rushlight import hub
from rushlight.utils import model_zoo

HUBCONF = '''
dependencies = ["rushlight"]
import helper
import rushlight as torch


def layer(size, bias=True):
    """A layer of some size."""
    return torch.nn.Linear(size, helper.WIDTH, bias=bias)


_hidden = layer
number = 3
'''


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(hub, "_hub_dir", None)
    return tmp_path


def repository(folder):
    folder.mkdir(parents=True)
    (folder / "hubconf.py").write_text(HUBCONF)
    (folder / "helper.py").write_text("WIDTH = 5\n")
    return folder


def checkpoint(folder):
    path = folder / "weights.pth"
    torch.save({"weight": torch.arange(3)}, path)
    return path


def test_folders(home, monkeypatch):
    assert hub.get_dir() == str(home / "home" / "hub")
    hub.set_dir(str(home / "other"))
    assert hub.get_dir() == str(home / "other")
    monkeypatch.setattr(hub, "_hub_dir", None)
    monkeypatch.delenv("TORCH_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert hub.get_dir() == "/cache/torch/hub"


def test_models_of_a_folder(home):
    folder = repository(home / "repo")
    layer = hub.load(folder, "layer", 3, source="local", bias=False)
    assert layer.weight.shape == (5, 3) and layer.bias is None
    with pytest.raises(RuntimeError, match="Cannot find callable number in hubconf"):
        hub.load(str(folder), "number", source="local")
    with pytest.raises(ValueError, match="should be a string of function name"):
        hub.load(str(folder), 3, source="local")
    with pytest.raises(ValueError, match='Unknown source: "disk"'):
        hub.load(str(folder), "layer", source="disk")
    text = HUBCONF.replace('["rushlight"]', '["no_such_module"]')
    (folder / "hubconf.py").write_text(text)
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_module"):
        hub.load(folder, "layer", 3, source="local")


def test_repositories_in_the_cache_need_no_network(home, capsys):
    repository(home / "home" / "hub" / "someone_models_v1")
    (home / "home" / "hub" / "trusted_list").write_text("someone_models\n")
    assert hub.list("someone/models:v1") == ["layer"]
    assert "Using cache found in" in capsys.readouterr().err
    assert hub.help("someone/models:v1", "layer") == "A layer of some size."
    assert hub.load("someone/models:v1", "layer", 2, verbose=False).weight.shape == (5, 2)
    assert capsys.readouterr().err.count("Using cache") == 1


def test_unknown_repositories_are_asked_about(home, monkeypatch):
    repository(home / "home" / "hub" / "stranger_models_v1")
    monkeypatch.setattr("builtins.input", lambda text: "n")
    with pytest.raises(Exception, match="Untrusted repository"):
        hub.list("stranger/models:v1")
    monkeypatch.setattr("builtins.input", lambda text: "y")
    assert hub.list("stranger/models:v1") == ["layer"]
    monkeypatch.setattr("builtins.input", lambda text: pytest.fail("asked again"))
    assert hub.list("stranger/models:v1") == ["layer"]


def test_the_network_that_is_not_there(home, monkeypatch):
    def unreachable(request):
        raise urllib.error.URLError("Name or service not known")

    monkeypatch.setattr(hub, "urlopen", unreachable)
    with pytest.raises(urllib.error.URLError, match="cannot reach https://github.com/pytorch/"):
        hub.load("pytorch/vision:v1", "resnet18")
    with pytest.raises(urllib.error.URLError, match="use a repository on disk"):
        hub.load_state_dict_from_url("https://example.com/weights.pth")
    with pytest.raises(RuntimeError, match="no internet connection and the repo could not be fou"):
        hub.load("pytorch/vision", "resnet18")
    with pytest.raises(ValueError, match="expected a repository as 'owner/name"):
        hub.load("just_a_folder", "resnet18")


def test_checkpoints_by_url_are_kept(home, capsys):
    path = checkpoint(home)
    found = hub.load_state_dict_from_url(path.as_uri(), progress=False)
    assert torch.equal(found["weight"], torch.arange(3))
    assert "Downloading:" in capsys.readouterr().err
    path.unlink()
    again = model_zoo.load_url(path.as_uri(), weights_only=True)
    assert torch.equal(again["weight"], torch.arange(3))
    assert (home / "home" / "hub" / "checkpoints" / "weights.pth").exists()


def test_names_with_hashes_are_checked(home):
    path = checkpoint(home)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    right = path.rename(home / f"weights-{digest[:8]}.pth")
    assert hub.HASH_REGEX.search(right.name).group(1) == digest[:8]
    hub.load_state_dict_from_url(right.as_uri(), check_hash=True, progress=False)
    wrong = right.rename(home / "weights-00000000.pth")
    with pytest.raises(RuntimeError, match='invalid hash value .expected "00000000", got'):
        hub.load_state_dict_from_url(wrong.as_uri(), check_hash=True, progress=False)
    kept = home / "home" / "hub" / "checkpoints"
    assert [each.name for each in kept.iterdir()] == [right.name]
    found = hub.load_state_dict_from_url(
        wrong.as_uri(), model_dir=str(home / "mine"), file_name="x.pth", progress=False
    )
    assert (home / "mine" / "x.pth").exists() and "weight" in found


def test_a_checkpoint_in_a_zip_archive(home):
    path = checkpoint(home)
    with zipfile.ZipFile(home / "packed.zip", "w") as packed:
        packed.write(path, "inner.pth")
    with pytest.warns(UserWarning, match="Falling back to the old format"):
        found = hub.load_state_dict_from_url((home / "packed.zip").as_uri(), progress=False)
    assert torch.equal(found["weight"], torch.arange(3))


def test_progress_is_written(home, capsys):
    path = checkpoint(home)
    hub.download_url_to_file(path.as_uri(), str(home / "copy.pth"))
    assert "100" in capsys.readouterr().err
    assert (home / "copy.pth").read_bytes() == path.read_bytes()

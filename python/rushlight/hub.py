"""Models of repositories that have a hubconf.py, and checkpoints by URL, kept in a cache folder."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
import sys
import uuid
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlparse
from urllib.request import Request, urlopen

import rushlight as torch

try:
    from tqdm import tqdm
except ImportError:
    from rushlight._progress import Progress as tqdm

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

# bd-1234abcd.pth names a file whose SHA-256 begins with 1234abcd.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
ENV_GITHUB_TOKEN = "GITHUB_TOKEN"
ENV_TORCH_HOME = "TORCH_HOME"
ENV_XDG_CACHE_HOME = "XDG_CACHE_HOME"
DEFAULT_CACHE_DIR = "~/.cache"
VAR_DEPENDENCY = "dependencies"
MODULE_HUBCONF = "hubconf.py"
READ_DATA_CHUNK = 128 * 1024
_TRUSTED_REPO_OWNERS = ("facebookresearch", "facebookincubator", "pytorch", "fairinternal")
_hub_dir: str | None = None


def _get_torch_home() -> str:
    """The cache folder that PyTorch's programs share."""
    cache = os.getenv(ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR)
    return os.path.expanduser(os.getenv(ENV_TORCH_HOME, os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder of repositories and checkpoints: `hub` under TORCH_HOME, unless set_dir said."""
    return _hub_dir if _hub_dir is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike) -> None:
    """Sets the folder of repositories and checkpoints."""
    global _hub_dir
    _hub_dir = os.path.expanduser(d)


@contextlib.contextmanager
def _on_path(folder: str) -> Iterator[None]:
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _import_module(name: str, path: str) -> Any:
    import importlib.util

    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _open(url: str) -> Any:
    """What a URL answers; the error of a network that cannot be reached names the URL."""
    headers = {"User-Agent": "torch.hub"}
    token = os.environ.get(ENV_GITHUB_TOKEN)
    if token is not None and urlparse(url).hostname in ("github.com", "api.github.com"):
        headers["Authorization"] = f"token {token}"
    try:
        return urlopen(Request(url, headers=headers))
    except HTTPError:
        raise
    except URLError as error:
        raise URLError(
            f"hub: cannot reach {url}: {error.reason}. Without a network, use a repository on disk "
            "(source='local'), or put the file into the cache folder (get_dir())"
        ) from error


def _parse_repo_info(github: str) -> tuple[str, str, str]:
    """Owner, name and branch or tag of `owner/name[:ref]`; without one, main or master."""
    repo, _, ref = github.partition(":")
    if repo.count("/") != 1:
        raise ValueError(
            f"hub: expected a repository as 'owner/name[:ref]', but got {github!r}; a folder on "
            "disk needs source='local'"
        )
    owner, name = repo.split("/")
    return owner, name, ref or _default_branch(owner, name)


def _default_branch(owner: str, name: str) -> str:
    try:
        with _open(f"https://github.com/{owner}/{name}/tree/main/"):
            return "main"
    except HTTPError as error:
        if error.code == 404:
            return "master"
        raise
    except URLError as error:  # no network: a copy in the cache will do
        for ref in ("main", "master"):
            if os.path.exists(os.path.join(get_dir(), f"{owner}_{name}_{ref}")):
                return ref
        raise RuntimeError(
            "It looks like there is no internet connection and the repo could not be found in the "
            f"cache ({get_dir()}): {error.reason}"
        ) from error


def _get_cache_or_reload(
    github: str, force_reload: bool, trust_repo: Any, calling_fn: str, verbose: bool = True
) -> str:
    """The folder of a repository: from the cache, or downloaded."""
    hub_dir = get_dir()
    os.makedirs(hub_dir, exist_ok=True)
    owner, name, ref = _parse_repo_info(github)
    tidy_ref = ref.replace("/", "_")
    folder = os.path.join(hub_dir, "_".join((owner, name, tidy_ref)))
    _check_repo_is_trusted(owner, name, trust_repo, calling_fn)
    if not force_reload and os.path.exists(folder):
        if verbose:
            sys.stderr.write(f"Using cache found in {folder}\n")
        return folder
    archive = os.path.join(hub_dir, f"{tidy_ref}.zip")
    url = f"https://github.com/{owner}/{name}/zipball/{ref}"
    sys.stderr.write(f'Downloading: "{url}" to {archive}\n')
    download_url_to_file(url, archive, progress=False)
    with zipfile.ZipFile(archive) as packed:
        extracted = os.path.join(hub_dir, packed.infolist()[0].filename)
        packed.extractall(hub_dir)
    os.remove(archive)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.move(extracted, folder)
    return folder


def _check_repo_is_trusted(owner: str, name: str, trust_repo: Any, calling_fn: str) -> None:
    """Asks, or warns, before code of a repository is run for the first time."""
    known = os.path.join(get_dir(), "trusted_list")
    if not os.path.exists(known):
        Path(known).touch()
    full_name = f"{owner}_{name}"
    trusted = full_name in Path(known).read_text().split("\n")
    trusted = trusted or owner in _TRUSTED_REPO_OWNERS
    if trust_repo is None and not trusted:
        warnings.warn(
            "You are about to download and run code from an untrusted repository. In a future "
            "release, this won't be allowed. To add the repository to your trusted list, change "
            f"the command to {calling_fn}(..., trust_repo=False) and a command prompt will appear "
            f"asking for an explicit confirmation of trust, or {calling_fn}(..., trust_repo=True), "
            "which will assume that the prompt is to be answered with 'yes'. You can also use "
            f"{calling_fn}(..., trust_repo='check') which will only prompt for confirmation if the "
            "repo is not already trusted. This will eventually be the default behaviour",
            stacklevel=4,
        )
        return
    if trust_repo is False or (trust_repo == "check" and not trusted):
        answer = input(
            f"The repository {owner}_{name} does not belong to the list of trusted repositories "
            "and as such cannot be downloaded. Do you trust this repository and wish to add it to "
            "the trusted list of repositories (y/N)?"
        )
        if answer.lower() not in ("y", "yes"):
            raise Exception("Untrusted repository.")
        trust_repo = True
    if trust_repo is True and not trusted:
        with open(known, "a") as file:
            file.write(full_name + "\n")


def _load_attr(module: Any, name: str) -> Any:
    return getattr(module, name, None)


def _check_dependencies(module: Any) -> None:
    import importlib.util

    wanted = _load_attr(module, VAR_DEPENDENCY) or ()
    missing = [name for name in wanted if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")


def _load_entry_from_hubconf(module: Any, model: str) -> Any:
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    _check_dependencies(module)
    found = _load_attr(module, model)
    if found is None or not callable(found):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return found


def _hubconf(folder: str) -> Any:
    return _import_module(MODULE_HUBCONF, os.path.join(folder, MODULE_HUBCONF))


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
    verbose: bool = True,
) -> Any:
    """The names of the models that a repository offers."""
    folder = _get_cache_or_reload(github, force_reload, trust_repo, "list", verbose)
    with _on_path(folder):
        module = _hubconf(folder)
    return [name for name in dir(module) if callable(getattr(module, name)) and name[0] != "_"]


def help(
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
) -> Any:
    """The docstring of a model of a repository."""
    folder = _get_cache_or_reload(github, force_reload, trust_repo, "help")
    with _on_path(folder):
        return _load_entry_from_hubconf(_hubconf(folder), model).__doc__


def load(
    repo_or_dir: str | os.PathLike,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """What model(*args, **kwargs) of a repository's hubconf.py gives.

    source: 'github' for `owner/name[:ref]`, downloaded once, or 'local' for a folder on disk.
    """
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        repo_or_dir = _get_cache_or_reload(repo_or_dir, force_reload, trust_repo, "load", verbose)
    return _load_local(repo_or_dir, model, *args, **kwargs)


def _load_local(hubconf_dir: str | os.PathLike, model: str, *args: Any, **kwargs: Any) -> Any:
    folder = os.fspath(hubconf_dir)
    with _on_path(folder):
        entry = _load_entry_from_hubconf(_hubconf(folder), model)
        return entry(*args, **kwargs)


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Downloads a file; it appears under its name when it is complete and its hash is right."""
    dst = os.path.expanduser(dst)
    partial = f"{dst}.{uuid.uuid4().hex}.partial"
    answer = _open(url)
    size = answer.headers.get("Content-Length")
    digest = hashlib.sha256()
    try:
        with (
            answer,
            open(partial, "wb") as file,
            tqdm(
                total=int(size) if size else None,
                disable=not progress,
                unit="B",
                unit_scale=True,
                unit_divisor=1024,
            ) as bar,
        ):
            while chunk := answer.read(READ_DATA_CHUNK):
                file.write(chunk)
                digest.update(chunk)
                bar.update(len(chunk))
        found = digest.hexdigest()
        if hash_prefix is not None and found[: len(hash_prefix)] != hash_prefix:
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{found}")')
        shutil.move(partial, dst)
    finally:
        if os.path.exists(partial):
            os.remove(partial)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> dict[str, Any]:
    """The checkpoint at a URL, from the cache where it has been loaded before.

    check_hash: the file's name ends in `-HASH.ext`, and its SHA-256 must begin with that.
    """
    if model_dir is None:
        model_dir = os.path.join(get_dir(), "checkpoints")
    os.makedirs(model_dir, exist_ok=True)
    name = file_name if file_name is not None else os.path.basename(urlparse(url).path)
    cached = os.path.join(model_dir, name)
    if not os.path.exists(cached):
        sys.stderr.write(f'Downloading: "{url}" to {cached}\n')
        match = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, cached, match.group(1) if match else None, progress=progress)
    if zipfile.is_zipfile(cached):
        with zipfile.ZipFile(cached) as packed:
            members = packed.infolist()
            if len(members) == 1 and "/" not in members[0].filename:  # a checkpoint, zipped
                warnings.warn(
                    "Falling back to the old format < 1.6. This support will be deprecated in "
                    "favor of default zipfile format introduced in 1.6. Please redo torch.save() "
                    "to save it in the new zipfile format.",
                    stacklevel=2,
                )
                packed.extract(members[0], model_dir)
                cached = os.path.join(model_dir, members[0].filename)
    if not os.path.isfile(cached):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), cached)
    return torch.load(cached, map_location=map_location, weights_only=weights_only)

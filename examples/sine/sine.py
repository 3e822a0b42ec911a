import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

torch.manual_seed(0)
x = torch.linspace(-3, 3, 256).unsqueeze(1)
y = torch.sin(2 * x) + 0.1 * torch.randn(256, 1)

model = nn.Sequential(nn.Linear(1, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

for step in range(501):
    loss = F.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(step, loss.item())

torch.save(model.state_dict(), "sine.pt")
print(model(torch.tensor([[0.5]])))

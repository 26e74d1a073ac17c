#!/usr/bin/env python3
"""A real score: a small diffusion model of handwritten digits, and how its samples depend on the width of the EMA.

    python3 digits.py run scores.csv
    posthoc-ema plot sweep scores.csv -o digits.svg

Trains (EDM's preconditioning and loss, Adam at a constant rate), records snapshots of two widths, makes averages of many
widths from them, and scores each: the Frechet distance between 4096 generated digits and the 1797 of scikit-learn, in the
hidden layer of a classifier, as FID is in that of Inception. Needs torch and scikit-learn; two minutes on a CPU.
"""
import argparse

import torch
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import posthocema as ph
from posthocema.torch import Recorder

SIGMA_DATA = 0.75  # of pixels in [-1, 1]
WIDTHS = [w / 100 for w in range(2, 29)]


class Denoiser(torch.nn.Module):
    """D(x; sigma) of EDM (arXiv 2206.00364, equation 7) around a small perceptron."""

    def __init__(self, width=256):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(64 + 16, width), torch.nn.SiLU(),
            torch.nn.Linear(width, width), torch.nn.SiLU(),
            torch.nn.Linear(width, width), torch.nn.SiLU(),
            torch.nn.Linear(width, 64))

    def forward(self, x, sigma):
        total = (sigma**2 + SIGMA_DATA**2).sqrt()
        waves = sigma.log() / 4 * torch.arange(1, 9)
        inner = self.net(torch.cat([x / total, waves.sin(), waves.cos()], dim=1))
        return SIGMA_DATA**2 / total**2 * x + sigma * SIGMA_DATA / total * inner


def train(model, images, steps, directory):
    """Snapshots of two widths, at 32 times."""
    random = torch.Generator().manual_seed(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with Recorder(model, widths=(0.05, 0.10), dir=directory, every=max(1, steps // 32)) as recorder:
        recorder.attach(optimizer)
        for _ in range(steps):
            clean = images[torch.randint(len(images), (128,), generator=random)]
            sigma = (1.2 * torch.randn(128, 1, generator=random) - 1.2).exp()
            noisy = clean + sigma * torch.randn(clean.shape, generator=random)
            weight = (sigma**2 + SIGMA_DATA**2) / (sigma * SIGMA_DATA) ** 2
            loss = (weight * (model(noisy, sigma) - clean) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@torch.no_grad()
def generate(model, n, steps=18):
    """Heun's method along the times of EDM, from the same noise for every model."""
    ramp = torch.linspace(1, 0, steps)
    times = torch.cat([(0.02 ** (1 / 7) + ramp * (20 ** (1 / 7) - 0.02 ** (1 / 7))) ** 7, torch.zeros(1)])
    x = times[0] * torch.randn(n, 64, generator=torch.Generator().manual_seed(2))
    for now, later in zip(times[:-1], times[1:]):
        slope = (x - model(x, now.expand(n, 1))) / now
        ahead = x + (later - now) * slope
        if later > 0:
            slope = (slope + (ahead - model(ahead, later.expand(n, 1))) / later) / 2
            ahead = x + (later - now) * slope
        x = ahead
    return x


def frechet(a, b):
    """Between the Gaussians that have the means and covariances of two sets [n, features] (Dowson and Landau 1982)."""
    first, second = torch.cov(a.double().T), torch.cov(b.double().T)
    values, vectors = torch.linalg.eigh(first)
    root = vectors * values.clamp(min=0).sqrt() @ vectors.T
    both = torch.linalg.eigvalsh(root @ second @ root).clamp(min=0).sqrt().sum()
    return float(((a.mean(0) - b.mean(0)).double() ** 2).sum() + first.trace() + second.trace() - 2 * both)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("snapshots")
    parser.add_argument("scores", help="CSV of sigma_rel and score, for plot sweep")
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--samples", type=int, default=4096)
    options = parser.parse_args()

    digits = load_digits()
    images = torch.tensor(digits.data.tolist()) / 8 - 1
    classifier = MLPClassifier((64,), max_iter=400, random_state=0).fit(images.tolist(), digits.target)
    layer, offset = (torch.tensor(x[0].tolist()) for x in (classifier.coefs_, classifier.intercepts_))
    real = (images @ layer + offset).relu()

    torch.manual_seed(0)
    model = Denoiser()
    train(model, images, options.steps, options.snapshots)

    def score():
        return frechet((generate(model, options.samples) @ layer + offset).relu(), real)

    print("the parameters of the last step have the score %.3f" % score())
    with ph.open(options.snapshots) as series, open(options.scores, "w", encoding="ascii") as out:
        out.write("sigma_rel,score\n")
        plan = series.plan(WIDTHS)
        for target in plan:
            plan.load_into(model, target.sigma_rel)
            out.write("%g,%.4f\n" % (target.sigma_rel, score()))


if __name__ == "__main__":
    main()

"""The obvious ways: loops and whole matrices, to hold the quick ones against."""

import numpy as np


def unit(x):
    norm = np.linalg.norm(x)
    return x / norm if norm > 0 else x


def similarities(texts, questions, owners, blend=0.5):
    """S as the paper defines it, with means in place of sums: loops over pairs of nodes and over questions."""
    n = len(texts)
    s = np.zeros((n, n))
    for i in range(n):
        asked = [
            unit(blend * unit(q) + (1 - blend) * unit(texts[i]))
            for q, o in zip(questions, owners, strict=True)
            if o == i
        ]
        for j in range(n):
            s[i, j] = np.mean([v @ unit(texts[j]) for v in asked or [unit(texts[i])]])
    return s


def normalised(s, shift=False):
    """L = D^-1/2 W D^-1/2 of the symmetric part without its diagonal."""
    w = (s + s.T) / 2
    if shift:
        w = (1 + w) / 2
    np.fill_diagonal(w, 0)
    d = w.sum(axis=1)
    return w / np.sqrt(np.outer(d, d))


def fused_scores(prompt, vectors, questions, hubs, chunks, w=0.6, c=0.2):
    """The fused score of each name of `vectors`, by the means and deviations of `chunks`, at most a hundred."""
    near = {name: unit(vectors[name]) @ unit(prompt) for name in vectors}
    asked = {name: [unit(q) @ unit(prompt) for q in questions[name]] for name in vectors}
    own = {name: near[name] - c * hubs[name] for name in vectors}
    best = {name: max(asked[name], default=near[name]) for name in vectors}
    scores = {}
    for name in vectors:
        text = standardised(own[name], [own[x] for x in chunks])
        others = [best[x] for x in chunks]
        lift = standardised(best[name], others) - text
        tells = asked[name] and np.std(others) > 1e-9
        scores[name] = text + (w * max(0, lift) if tells else 0)
    return scores


def standardised(value, values):
    """For at most a hundred values."""
    return (value - np.mean(values)) / np.std(values) if np.std(values) > 1e-9 else 0.0


def blended_score(prompt, text, questions, a):
    cosines = [unit(a * unit(q) + (1 - a) * unit(text)) @ unit(prompt) for q in questions]
    return max(cosines, default=unit(text) @ unit(prompt))

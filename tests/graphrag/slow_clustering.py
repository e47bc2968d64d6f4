"""The agglomerative clustering and modularity, written as they are described: one node, one pair at a time."""

from zlib import crc32

Weights = dict[tuple[str, str], int]
Partition = set[frozenset[str]]


def slow_modularity(names: list[str], weights: Weights, communities: Partition) -> float:
    """The definition, as a sum over all pairs of nodes."""
    weight = {**weights, **{(b, a): w for (a, b), w in weights.items()}}
    strength = {a: sum(weight.get((a, b), 0) for b in names) for a in names}
    total = sum(strength.values())
    home = {name: community for community in communities for name in community}
    return sum(
        weight.get((a, b), 0) / total - strength[a] * strength[b] / total**2
        for a in names
        for b in names
        if home[a] is home[b]
    )


def slow_levels(names: list[str], weights: Weights) -> list[Partition]:
    """The partitions of the dendrogram, fine before coarse; the names alone where nothing moves."""
    names = sorted(names)
    strength = {name: sum(w for pair, w in weights.items() if name in pair) for name in names}
    units = {name: frozenset([name]) for name in names}  # by the node that names the unit
    levels: list[Partition] = []
    while True:
        between = {
            (a, b): sum(weights.get((min(x, y), max(x, y)), 0) for x in units[a] for y in units[b])
            for a in units
            for b in units
            if a != b
        }
        edges = {pair: w for pair, w in between.items() if w}
        labels = _moves(sorted(units), edges, _sums(units, strength), not levels)
        groups: dict[str, set[str]] = {}
        for unit, label in labels.items():
            groups.setdefault(label, set()).add(unit)
        parts = [part for group in groups.values() for part in _connected(group, between)]
        if len(parts) == len(units):
            return levels or [set(units.values())]
        members = [frozenset(name for unit in part for name in units[unit]) for part in parts]
        hubs = [min(part, key=lambda unit: (-strength[unit], unit)) for part in parts]
        units = dict(zip(hubs, members, strict=True))
        levels.append(set(units.values()))


def _sums(units: dict[str, frozenset[str]], strength: dict[str, int]) -> dict[str, int]:
    return {unit: sum(strength[name] for name in members) for unit, members in units.items()}


def _moves(
    units: list[str], between: dict[tuple[str, str], int], strength: dict[str, int], are_entities: bool
) -> dict[str, str]:
    total = sum(strength.values())
    total -= total % 2 ** max(0, len(f"{total:b}") - 3)
    near: dict[str, list[str]] = {unit: [] for unit in units}
    for a, b in between:
        near[a].append(b)
    labels = {unit: unit for unit in units}
    due = {unit for unit in units if near[unit]}
    for number in range(1, 13):
        changed: set[str] = set()
        moved = 0
        for block in range(16 if number <= 3 else 1):
            turn = [unit for unit in units if unit in due and (number > 3 or crc32(unit.encode()) >> 28 == block)]
            wanted = {unit: _target(unit, near, labels, between, strength, total, are_entities) for unit in turn}
            movers = [unit for unit in turn if wanted[unit] != labels[unit]]
            if number > 3:
                movers = [unit for unit in movers if not any(n in movers and n < unit for n in near[unit])]
            for unit in movers:
                changed |= {labels[unit], wanted[unit]}
                labels[unit] = wanted[unit]
            moved += len(movers)
        if moved == 0 or moved * 10_000 < len(units):
            break
        if number >= 3:
            inside = {unit for unit in units if labels[unit] in changed}
            due = {unit for unit in units if near[unit] and (unit in inside or not inside.isdisjoint(near[unit]))}
    return labels


def _target(
    unit: str,
    near: dict[str, list[str]],
    labels: dict[str, str],
    between: dict[tuple[str, str], int],
    strength: dict[str, int],
    total: int,
    are_entities: bool,
) -> str:
    own = labels[unit]

    def members(label: str) -> list[str]:
        return [other for other in labels if labels[other] == label and other != unit]

    def gain(label: str) -> int:
        weight = sum(between[unit, other] for other in near[unit] if labels[other] == label)
        worth = total * weight
        if label != own and not (are_entities and not members(own)):
            worth -= worth // (16 if are_entities else 8)
        return worth - strength[unit] * sum(strength[other] for other in members(label))

    best = min({labels[other] for other in near[unit]}, key=lambda label: (-gain(label), label))
    if gain(best) <= gain(own):
        return own
    alone = not members(own) and len(members(best)) == 1
    return own if alone and best > own else best


def _connected(group: set[str], between: dict[tuple[str, str], int]) -> list[set[str]]:
    parts: list[set[str]] = []
    for unit in sorted(group):
        touching = [part for part in parts if any(between.get((unit, other)) for other in part)]
        parts = [part for part in parts if part not in touching] + [{unit}.union(*touching)]
    return parts

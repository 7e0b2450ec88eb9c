from collections import deque
from heapq import heapify, heappop, heappush


class CycleError(ValueError):
    def __init__(self, cycle):
        super().__init__("cycle: " + " -> ".join([*cycle, cycle[0]]))
        self.cycle = cycle


def complete(needs):
    """Every part, with the set of what it directly needs."""
    graph = {part: set(others) for part, others in needs.items()}
    for others in needs.values():
        for other in others:
            graph.setdefault(other, set())
    return graph


def restrict(graph, wanted):
    """The wanted parts, and what they need."""
    kept = {}
    todo = list(wanted)
    while todo:
        part = todo.pop()
        if part not in kept:
            kept[part] = graph[part]
            todo.extend(graph[part])
    return kept


def cycle_through(graph, start):
    """The shortest circle whose first part is start, the smallest of those; None if there is none."""
    paths = deque([[start]])
    seen = {start}
    while paths:
        path = paths.popleft()
        for other in sorted(graph[path[-1]]):
            if other == start:
                return path
            if other > start and other not in seen:
                seen.add(other)
                paths.append([*path, other])
    return None


def refuse_cycle(graph):
    cycles = [cycle for part in graph if (cycle := cycle_through(graph, part))]
    raise CycleError(min(cycles, key=lambda cycle: (len(cycle), cycle)))


def order(needs, wanted=None):
    graph = complete(needs)
    if wanted is not None:
        for part in wanted:
            if part not in graph:
                raise ValueError(f"unknown part: {part}")
        graph = restrict(graph, wanted)
    users = {part: [] for part in graph}
    for part, others in graph.items():
        for other in others:
            users[other].append(part)
    missing = {part: len(others) for part, others in graph.items()}
    ready = [part for part in graph if not missing[part]]
    heapify(ready)
    made = []
    while ready:
        part = heappop(ready)
        made.append(part)
        for user in users[part]:
            missing[user] -= 1
            if not missing[user]:
                heappush(ready, user)
    if len(made) < len(graph):
        refuse_cycle(graph)
    return made


def waves(needs):
    graph = complete(needs)
    made = set()
    result = []
    while len(made) < len(graph):
        wave = sorted(part for part, others in graph.items() if part not in made and others <= made)
        if not wave:
            refuse_cycle(graph)
        made.update(wave)
        result.append(wave)
    return result

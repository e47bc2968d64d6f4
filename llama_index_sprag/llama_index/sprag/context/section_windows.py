"""Sections that a model finds in a document of many parts, window by window."""

from collections.abc import Sequence

__all__ = ["next_window", "section_of_each"]


def next_window(lengths: Sequence[int], start: int, size: int) -> int:
    """The end of the window of parts that begins at `start` and has at most the length `size`, or a single part.

    >>> next_window([3, 3, 3], 0, 7), next_window([9, 1], 0, 7)
    (2, 1)
    """
    end, total = start, 0
    while end < len(lengths) and (end == start or total + lengths[end] <= size):
        total += lengths[end]
        end += 1
    return end


def section_of_each(sections: Sequence[Sequence[object]], size: int) -> tuple[list[list[str]], list[str]]:
    """For each part, the title of its section as a path, and the summary of the section.

    The beginnings of sections that a model names become a partition: a section ends where the next one begins; parts
    before the first section have none.

    Parameters
    ----------
    sections : (first part, title, summary), in any order
    size : number of parts

    >>> section_of_each([(1, "Risks", "This section is about: risks.")], 3)
    ([[], ['Risks'], ['Risks']], ['', 'This section is about: risks.', 'This section is about: risks.'])
    """
    titles: list[list[str]] = [[] for _ in range(size)]
    summaries = [""] * size
    ordered = sorted((int(str(first)), str(title), str(summary)) for first, title, summary in sections)
    for number, (first, title, summary) in enumerate(ordered):
        end = ordered[number + 1][0] if number + 1 < len(ordered) else size
        for i in range(max(first, 0), min(end, size)):
            titles[i] = [title] if title else []
            summaries[i] = summary
    return titles, summaries

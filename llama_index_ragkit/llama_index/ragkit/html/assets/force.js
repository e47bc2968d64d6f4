"use strict";
// A graph that opens in part: which nodes are shown. The lit ones and the heaviest first, so that a graph of
// thousands begins as something that can be read.
ragkit.force = () => {
  const { data, nodes } = ragkit;
  const START = 300;
  const neighbours = nodes.map(() => new Set());
  data.view.edges.forEach(({ source, target }) => {
    if (source === target) return;
    neighbours[source].add(target);
    neighbours[target].add(source);
  });
  const weight = (i) => [nodes[i].lit ? 1 : 0, nodes[i].size ?? 1, neighbours[i].size];
  const ranking = nodes
    .map((_, i) => i)
    .sort((a, b) => {
      const [wa, wb] = [weight(a), weight(b)];
      return wb[0] - wa[0] || wb[1] - wa[1] || wb[2] - wa[2] || a - b;
    });
  const rank = new Map(ranking.map((i, place) => [i, place]));
  const shown = nodes.length <= 1.3 * START ? new Set(ranking) : beginning();

  // The lit nodes, then always the first in rank among the neighbours of those that are in: a connected piece.
  function beginning() {
    const chosen = new Set();
    const edge = new Set();
    let next = 0;
    while (chosen.size < START) {
      let best = -1;
      if (edge.size && !nodes[ranking[next]].lit) {
        for (const i of edge) if (best < 0 || rank.get(i) < rank.get(best)) best = i;
      } else {
        while (chosen.has(ranking[next])) next += 1;
        best = ranking[next];
      }
      edge.delete(best);
      chosen.add(best);
      for (const i of neighbours[best]) if (!chosen.has(i)) edge.add(i);
      while (next < ranking.length - 1 && chosen.has(ranking[next])) next += 1;
    }
    return chosen;
  }

  return {
    shown,
    neighbours,
    rank: (i) => rank.get(i),
    hidden: (i) => [...neighbours[i]].filter((j) => !shown.has(j)).sort((a, b) => rank.get(a) - rank.get(b)),
    show: (list) => list.forEach((i) => shown.add(i)),
    showAll: () => nodes.forEach((_, i) => shown.add(i)),
  };
};

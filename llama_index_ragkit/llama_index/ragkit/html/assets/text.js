"use strict";
// Measuring and wrapping labels: a canvas draws what it is given, so lines are broken here.
ragkit.text = (() => {
  const FAMILY =
    'system-ui, -apple-system, "Segoe UI", "Noto Sans", "Noto Sans CJK SC", "Noto Naskh Arabic", sans-serif';
  const RTL = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/u;
  // Thai, Lao, Khmer, Burmese, kana, Han: no spaces between words.
  const UNSPACED = /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]/u;
  const context = document.createElement("canvas").getContext("2d");
  // Browsers before 2024 may not know Intl.Segmenter; spaces and code points then have to do.
  const segmenter = (granularity, plain) => {
    if (!Intl.Segmenter) return plain;
    const made = new Intl.Segmenter(undefined, { granularity });
    return (text) => [...made.segment(text)].map((part) => part.segment);
  };
  const words = segmenter("word", (text) => text.match(/\s+|\S+/gu) ?? []);
  const characters = segmenter("grapheme", (text) => Array.from(text));

  function width(text, size, bold = false) {
    context.font = `${bold ? 600 : 400} ${size}px ${FAMILY}`;
    return context.measureText(text).width;
  }

  // Longest beginning of the text that fits, cut between characters as a reader counts them.
  function cut(text, room, size, bold) {
    if (width(text, size, bold) <= room) return text;
    const parts = characters(text.slice(0, 300));
    let low = 0;
    let high = parts.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (width(parts.slice(0, middle).join("") + "…", size, bold) <= room) low = middle;
      else high = middle - 1;
    }
    return parts.slice(0, low).join("").trimEnd() + "…";
  }

  // A canvas knows no paragraphs: each line is told the direction that the whole text begins with.
  function directed(lines, whole) {
    if (!lines.some((line) => RTL.test(line))) return lines;
    const first = /\p{L}/u.exec(whole);
    return lines.map((line) => (first && RTL.test(first[0]) ? "\u2067" : "\u2066") + line + "\u2069");
  }

  // Where a line may break: at spaces and hyphens, and between the words of scripts that write no spaces.
  function pieces(text) {
    const made = [];
    for (const segment of words(text.slice(0, 400))) {
      const last = made.at(-1) ?? " ";
      const free =
        /[\s-]$/u.test(last) ||
        (/^[^\p{P}]/u.test(segment) && (UNSPACED.test(segment) || UNSPACED.test(last.slice(-1))));
      if (free && !/^\s+$/u.test(segment)) made.push(segment);
      else made[made.length ? made.length - 1 : 0] = (made.length ? last : "") + segment;
    }
    return made;
  }

  // At most `lines` lines no wider than `room`; a word that is wider than a line is broken inside.
  function wrap(text, room, size, lines, bold = false) {
    const made = [];
    let current = "";
    const left = pieces(text);
    while (left.length) {
      const piece = left.shift();
      const longer = current + piece;
      if (width(longer.trimEnd(), size, bold) <= room) {
        current = longer;
      } else if (made.length === lines - 1) {
        current = cut(longer + left.join(""), room, size, bold);
        break;
      } else if (current.trim()) {
        made.push(current.trim());
        current = "";
        left.unshift(piece);
      } else {
        const head = cut(piece, room, size, bold).replace(/…$/u, "") || piece.slice(0, 1);
        made.push(head);
        left.unshift(piece.slice(head.length));
        current = "";
      }
    }
    if (current.trim()) made.push(current.trim());
    return directed(made, text);
  }

  return { FAMILY, width, wrap, oneLine: (text, room, size, bold) => cut(text, room, size, bold) };
})();

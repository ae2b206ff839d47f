// What the browser tests ask of a page; each answers with a list of what is wrong, empty where nothing is.
({
  visible(e) {
    return e.checkVisibility() && !e.closest(".hidden, .tip") && !e.classList.contains("skip") && e.getClientRects().length > 0;
  },

  named(e) {
    return `${e.tagName}.${e.className}#${e.id} ${e.textContent.trim().slice(0, 30)}`;
  },

  // Boxes of text and controls that lie on each other without one being inside the other.
  overlaps() {
    const names = "h1,h2,h3,h4,p,figure,figcaption,summary,article,li,canvas,button,select,label,.scroll,.share,.picked,.plot";
    const seen = [...document.querySelectorAll(names)].filter((e) => this.visible(e) && !e.closest(".scroll > *, svg"));
    const box = seen.map((e) => e.getBoundingClientRect());
    const found = [];
    for (let i = 0; i < seen.length; i++) {
      for (let j = i + 1; j < seen.length; j++) {
        if (seen[i].contains(seen[j]) || seen[j].contains(seen[i])) continue;
        const across = Math.min(box[i].right, box[j].right) - Math.max(box[i].left, box[j].left);
        const down = Math.min(box[i].bottom, box[j].bottom) - Math.max(box[i].top, box[j].top);
        if (across > 1.5 && down > 1.5) found.push([this.named(seen[i]), this.named(seen[j])]);
      }
    }
    return found;
  },

  // Labels of one axis that run into each other.
  labels() {
    const hit = (p, q) => Math.min(p.right, q.right) - Math.max(p.left, q.left) > 0.5
      && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 2.5;
    return [...document.querySelectorAll(".x-ticks, .y-ticks")].filter((e) => this.visible(e)).flatMap((axis) => {
      const boxes = [...axis.children].map((e) => [e.textContent, e.getBoundingClientRect()]).filter(([, r]) => r.width);
      return boxes.flatMap(([a, p], i) => boxes.slice(i + 1).filter(([, q]) => hit(p, q)).map(([b]) => `${a} | ${b}`));
    });
  },

  // What reaches beyond the right edge of the window.
  beyond() {
    const edge = document.documentElement.clientWidth + 0.5;
    return [...document.querySelectorAll("header *, main *, footer *")]
      .filter((e) => this.visible(e) && !e.closest(".scroll > *, svg") && e.getBoundingClientRect().right > edge)
      .map((e) => this.named(e));
  },

  // Text with less contrast to its ground than 4.5 to 1.
  pale() {
    const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
    const parse = (text) => (text.match(/[\d.]+/g) || []).map(Number);
    const ground = (e) => {
      for (let at = e; at; at = at.parentElement) {
        const colour = parse(getComputedStyle(at).backgroundColor);
        if (colour.length === 3 || colour[3] === 1) return colour.slice(0, 3);
      }
      return [255, 255, 255];
    };
    const names = "p, li, dt, dd, h1, h2, h3, h4, .figures td, th, .words td, summary, button, figcaption, .x-ticks span";
    return [...document.querySelectorAll(names)].filter((e) => this.visible(e) && e.textContent.trim()).filter((e) => {
      const [a, b] = [light(parse(getComputedStyle(e).color).slice(0, 3)), light(ground(e))];
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5;
    }).map((e) => this.named(e));
  },
})

/* ---- what is shown of the time: summary, latency, flame graph, events. Each is made in slices, and given up when the time changes. ---- */
let run = 0;
/* Calls visit(i) for the events of the shown time that are wanted; false: the reader has gone on. */
async function eachEvent(mine, visit) {
	const to = lower(shown.to, 0, trace.n);
	for (let i = lower(shown.from, 0, trace.n), begin = performance.now(); i < to; i++) {
		if (wanted(i)) visit(i);
		if (i % 4096 === 0 && performance.now() - begin > 12) { await pause(); if (mine !== run) return false; begin = performance.now(); }
	}
	return mine === run;
}

/* Times by their size: 16 steps from each power of two to the next, so a percentile is right to a few hundredths. */
const STEPS = 16, SIZES = 64 * STEPS;
const sizeOf = (ns) => { if (ns < 1) return 0; const e = Math.floor(Math.log2(ns)); return Math.min(SIZES - 1, e * STEPS + Math.floor((ns / 2 ** e - 1) * STEPS)); };
const ofSize = (s) => 2 ** Math.floor(s / STEPS) * (1 + (s % STEPS + 0.5) / STEPS);
/* Round times, as of --hist duration: 0, 1 ns, 2, 5, 10, 20, 50 ns and so on. */
const ROUND = [0, ...Array.from({ length: 57 }, (_, k) => Number([1, 2, 5][k % 3] + "e" + Math.floor(k / 3)))];
function roundOf(ns) {
	let i = ns < 1 ? 0 : Math.floor(Math.log10(ns) * 3);
	while (i && ROUND[i] > ns) i--;
	while (i + 1 < ROUND.length && ROUND[i + 1] <= ns) i++;
	return i;
}
class Tally {
	constructor() { this.n = 0; this.timed = 0; this.total = 0; this.most = 0; this.sizes = null; }
	add(d) {
		this.n++;
		if (d < 0) return;
		if (!this.sizes) this.sizes = new Uint32Array(SIZES);
		this.timed++;
		this.total += d;
		this.most = Math.max(this.most, d);
		this.sizes[sizeOf(d)]++;
	}
	percentile(p) {
		if (!this.timed) return "";
		for (let s = 0, sum = 0; s < SIZES; s++) { sum += this.sizes[s]; if (sum >= this.timed * p) return span(Math.min(this.most, ofSize(s))); }
		return span(this.most);
	}
	cells(all) {
		const count = [this.n.toLocaleString("en-US"), amount(Math.round(this.n / Math.max(1e-9, (shown.to - shown.from) / 1e9)), "/s")];
		if (!all) return count;
		return this.timed ? [...count, span(this.total), span(this.total / this.timed), this.percentile(0.5), this.percentile(0.9), this.percentile(0.99), span(this.most)] : [...count, "", "", "", "", "", ""];
	}
}
const MOST_ROWS = 100;
function table(pane, title, what, rows, timed, each) {
	if (!rows.length) return;
	const body = make("table"), head = make("tr");
	for (const h of [what, "events", "rate", ...(timed ? ["total", "mean", "p50", "p90", "p99", "longest"] : [])]) head.append(make("th", "", h));
	body.append(head);
	for (const [name, tally, key] of rows.slice(0, MOST_ROWS)) {
		const tr = make("tr"), first = make("td");
		if (each) each(tr, first, key);
		first.append(clean(name));
		tr.append(first, ...tally.cells(timed).map((c) => make("td", "", c)));
		body.append(tr);
	}
	pane.append(make("h2", "", title), make("div", "scroll", body));
	if (rows.length > MOST_ROWS) pane.append(make("div", "dim", rows.length - MOST_ROWS + " more"));
}
const byWeight = (x, y) => y[1].total - x[1].total || y[1].n - x[1].n;
function probeRow(tr, first, p) {
	const swatch = make("span", "swatch");
	swatch.style.background = `var(--e${p % COLORS_OF_EVENTS})`;
	first.append(swatch);
	tr.dataset.probe = p;
	tr.title = "show only these (f)";
	tr.classList.toggle("pick", shown.probe === p);
	tr.onclick = () => only(p);
}
async function drawSummary(pane, mine) {
	const probes = trace.probes.map(() => new Tally()), threads = trace.threads.map(() => new Tally()), callers = new Map();
	const done = await eachEvent(mine, (i) => {
		const d = trace.duration[i], s = trace.stack[i], up = s && trace.parent[s];
		probes[trace.probe[i]].add(d);
		threads[trace.thread[i]].add(d);
		if (up) { const f = trace.tree.name[trace.merged[up]]; let t = callers.get(f); if (!t) callers.set(f, t = new Tally()); t.add(d); }
	});
	if (!done) return;
	const timed = probes.some((t) => t.timed), rows = (list, name) => list.map((t, k) => [name(k), t, k]).filter((r) => r[1].n).sort(byWeight);
	const all = make("div");
	for (const n of trace.notes) all.append(make("span", "note", n));
	table(all, "Events", "event", rows(probes, (p) => trace.probes[p]), timed, probeRow);
	table(all, "Threads", "thread", rows(threads, nameOfThread), timed);
	table(all, "Callers", "caller", [...callers].map(([f, t]) => [trace.functions[f], t]).sort(byWeight), timed);
	if (!all.childNodes.length) all.append(make("div", "dim", "no events in this time"));
	pane.replaceChildren(...all.childNodes);
}

/* ---- latency ---- */
function mix(part) {
	const rgb = (c) => [1, 3, 5].map((k) => parseInt(c.slice(k, k + 2), 16)), a = rgb(colors.cold), b = rgb(colors.hot);
	return `rgb(${a.map((x, k) => Math.round(x + (b[k] - x) * part)).join(",")})`;
}
async function drawLatency(pane, mine) {
	const width = Math.max(200, pane.clientWidth - 28), columns = Math.floor(width / 4), grid = new Uint32Array(columns * 64 * 4), rounds = new Uint32Array(ROUND.length), tally = new Tally(), scale = columns / (shown.to - shown.from);
	const done = await eachEvent(mine, (i) => {
		const d = trace.duration[i];
		if (d < 0) return;
		tally.add(d);
		rounds[roundOf(d)]++;
		grid[Math.min(columns - 1, Math.floor((trace.time[i] - shown.from) * scale)) * 256 + Math.floor(sizeOf(d) / 4)]++;
	});
	if (!done) return;
	if (!tally.timed) { pane.replaceChildren(make("div", "dim", trace.timed.some((x) => x) ? "no calls in this time" : "These events have no duration: record calls with --return FUNCTION -t duration.")); return; }
	const what = shown.probe < 0 ? "all calls" : trace.probes[shown.probe];
	const canvas = make("canvas");
	canvas.id = "heat";
	canvas.setAttribute("role", "img");
	canvas.setAttribute("aria-label", `Latency of ${clean(what)}: half of the calls take ${tally.percentile(0.5)} at most, one in a hundred more than ${tally.percentile(0.99)}`);
	pane.replaceChildren(make("h2", "", `Latency of ${what} over time \u00b7 p50 ${tally.percentile(0.5)} \u00b7 p90 ${tally.percentile(0.9)} \u00b7 p99 ${tally.percentile(0.99)} \u00b7 longest ${span(tally.most)}`), canvas, make("h2", "", "How many calls took how long"), histogram(rounds));
	drawHeat(canvas, grid, columns, tally);
}
function bounds(tally) {
	let low = 63, high = 0;
	for (let s = 0; s < SIZES; s++) if (tally.sizes[s]) { low = Math.min(low, Math.floor(s / STEPS)); high = Math.max(high, Math.floor(s / STEPS)); }
	return [low, high + 1];
}
function drawHeat(canvas, grid, columns, tally) {
	const [low, high] = bounds(tally), rows = (high - low) * 4, left = 64, width = canvas.parentNode.clientWidth - 28, height = 220, g = sized(canvas, width, height), h = (height - 18) / rows, w = (width - left) / columns;
	let most = 1;
	for (const n of grid) if (n > most) most = n;
	for (let c = 0; c < columns; c++)
		for (let r = 0; r < rows; r++) {
			const n = grid[c * 256 + low * 4 + r];
			if (!n) continue;
			g.fillStyle = mix(most > 1 ? Math.log(n) / Math.log(most) : 1);
			g.fillRect(left + c * w, height - 18 - (r + 1) * h, Math.max(1, w), Math.max(1, h));
		}
	g.fillStyle = colors.dim;
	const inside = ROUND.filter((ns, k) => ns >= 2 ** low && ns <= 2 ** high && (high - low < 10 || k % 3 === 1));
	for (const ns of inside.length ? inside : [2 ** low]) g.fillText(span(ns), 4, Math.max(9, height - 18 - (Math.log2(ns) - low) * 4 * h + 3));
	for (let k = 0, n = width < 500 ? 2 : 5; k < n; k++) g.fillText(sinceIn(shown.from + (shown.to - shown.from) * k / n, (shown.to - shown.from) / 100, (shown.to - shown.from) / 10), left + (width - left) * k / n, height - 4);
}
function histogram(rounds) {
	const list = make("div", "hist"), most = Math.max(...rounds);
	let low = 0, high = rounds.length - 1;
	while (!rounds[low]) low++;
	while (!rounds[high]) high--;
	for (let k = low; k <= high; k++) {
		const bar = make("i"), n = rounds[k];
		bar.style.width = n ? Math.max(0.3, 100 * n / most) + "%" : "0";
		list.append(make("span", "", span(ROUND[k]) + " \u2013 " + (k + 1 < ROUND.length ? span(ROUND[k + 1]) : "")), make("span", "", n.toLocaleString("en-US")), bar);
	}
	return list;
}

/* ---- flame graph ---- */
let weight = "events", flame = null;
async function flameData(mine) {
	const { tree, merged } = trace, n = tree.name.length, total = new Float64Array(n);
	const done = await eachEvent(mine, (i) => { if (trace.stack[i]) total[merged[trace.stack[i]]] += weight === "events" ? 1 : Math.max(0, trace.duration[i]); });
	if (!done) return null;
	const children = Array.from({ length: n }, () => null);
	for (let i = n - 1; i > 0; i--) {
		total[tree.parent[i]] += total[i];
		if (i % 16384 === 0) await pause();
	}
	let narrow = 0;
	for (let i = 1; i < n; i++) {
		if (!total[i]) continue;
		if (total[i] < total[0] / 12000) { narrow++; continue; }
		(children[tree.parent[i]] = children[tree.parent[i]] || []).push(i);
		if (i % 16384 === 0) await pause();
	}
	const nodes = [], name = (i) => trace.functions[tree.name[i]], todo = [];
	const open = (i, depth) => { for (const c of (children[i] || []).sort((a, b) => (name(a) < name(b) ? 1 : -1))) todo.push(c, depth); };
	for (open(0, 0); todo.length;) {
		const depth = todo.pop(), i = todo.pop();
		nodes.push(tree.name[i], depth, total[i]);
		open(i, depth + 1);
	}
	return mine === run ? { title: (weight === "events" ? "events" : "time in calls") + " by stack", unit: weight === "events" ? "events" : "ns", total: total[0], narrow, names: trace.functions, nodes } : null;
}
async function drawFlame(pane, mine) {
	if (trace.tree.name.length < 2) { pane.replaceChildren(make("div", "dim", "These events have no stacks: record them with -t backtrace.")); return; }
	const data = await flameData(mine);
	if (!data) return;
	if (!pane.querySelector(".flame")) {
		flame = new dynprobeFlame.Flame(pane, data, { part: true, hanging: true });
		flame.view.classList.add("hanging");
		if (trace.timed.some((x) => x)) {
			const by = make("button", "", "By time / by events");
			by.type = "button";
			by.onclick = () => { weight = weight === "events" ? "time" : "events"; drawTab(); };
			flame.back.before(by);
		}
	} else {
		flame.set(data);
	}
}

/* ---- events ---- */
const LINE = 20, TALLEST = 8e6;
let listing = null;
async function drawEvents(pane, mine) {
	let rows = shown.found;
	if (!rows) {
		const list = new Uint32Array(lower(shown.to, 0, trace.n) - lower(shown.from, 0, trace.n));
		let n = 0;
		if (!await eachEvent(mine, (i) => { list[n++] = i; })) return;
		rows = list.subarray(0, n);
	}
	const box = make("div", "split"), list = make("div"), inside = make("div"), detail = make("aside");
	list.id = "list";
	inside.id = "listed";
	detail.id = "detail";
	list.tabIndex = 0;
	list.setAttribute("aria-label", "Events");
	list.append(inside);
	box.append(list, detail);
	pane.replaceChildren(box);
	inside.style.height = Math.min(TALLEST, rows.length * LINE) + "px";
	listing = { rows, list, inside, pick: -1 };
	list.addEventListener("scroll", drawListed);
	if (!rows.length) inside.append(make("div", "row dim", shown.found ? "nothing found" : "no events in this time"));
	await drawListed();
	if (shown.picked >= 0) { markRow(true); say(shown.picked); } else detail.append(make("div", "dim", "n and p, or a click, pick an event"));
}
/* Browsers have a greatest height: of longer lists the position stands for a share of the rows. */
async function drawListed() {
	const { rows, list, inside } = listing, high = list.clientHeight, tall = rows.length * LINE, real = Math.min(TALLEST, tall);
	const part = real > high ? list.scrollTop / (real - high) : 0, first = Math.max(0, Math.floor(part * Math.max(0, tall - high) / LINE)), last = Math.min(rows.length, first + Math.ceil(high / LINE) + 2);
	const mine = listing.drawn = {}, nodes = [];
	if (!rows.length) return;
	for (let part = Math.floor(rows[first] / trace.part); part <= Math.floor(rows[last - 1] / trace.part) && last - first < 500; part++) if (!kept.has(part)) await linesOf(part);
	if (listing.drawn !== mine) return;
	for (let k = first; k < last; k++) {
		const i = rows[k], row = make("div", "row" + (i === shown.picked ? " pick" : ""), since(trace.time[i], 1) + "  " + (knownText(i) || await textOf(i)));
		row.style.top = list.scrollTop + (k - first) * LINE - (tall > TALLEST ? 0 : list.scrollTop - first * LINE) + "px";
		row.dataset.event = i;
		row.onclick = () => pick(i, true);
		nodes.push(row);
	}
	if (listing.drawn === mine) inside.replaceChildren(...nodes);
}
function placeOf(i) {
	const { rows } = listing;
	let from = 0, to = rows.length;
	while (from < to) { const middle = (from + to) >> 1; if (rows[middle] < i) from = middle + 1; else to = middle; }
	return from;
}
function markRow(follow) {
	if (!listing) return;
	const { rows, list } = listing, k = placeOf(shown.picked), tall = rows.length * LINE, real = Math.min(TALLEST, tall), high = list.clientHeight, y = real > high ? k * LINE / Math.max(1, tall - high) * (real - high) : 0;
	if (follow && (y < list.scrollTop || y > list.scrollTop + high - 2 * LINE)) list.scrollTop = Math.max(0, y - high / 3);
	drawListed();
}
function showDetail(i, text) {
	const pane = el("detail");
	if (!pane || shown.picked !== i) return;
	const frames = stackOf(i), list = make("ol");
	list.start = 0;
	for (const f of frames) list.append(make("li", "", f));
	pane.replaceChildren(make("div", "who", trace.probes[trace.probe[i]]), make("div", "dim", clock(trace.time[i])), make("div", "dim", nameOfThread(trace.thread[i]) + (trace.duration[i] >= 0 ? " \u00b7 took " + span(trace.duration[i]) : "")), make("p", "", text));
	if (frames.length) pane.append(make("h2", "", "Stack"), list);
}
const tabs = { summary: ["Summary", drawSummary], latency: ["Latency", drawLatency], flame: ["Flame graph", drawFlame], events: ["Events", drawEvents] };
function drawTab() {
	const bar = el("tabs"), pane = el("body"), mine = ++run;
	if (bar.dataset.tab !== shown.tab || !bar.childNodes.length) {
		bar.replaceChildren(...Object.entries(tabs).map(([key, [title]]) => {
			const b = make("button", "", key === "events" && shown.found ? title + " found" : title);
			b.type = "button";
			b.setAttribute("role", "tab");
			b.setAttribute("aria-selected", String(shown.tab === key));
			b.tabIndex = shown.tab === key ? 0 : -1;
			b.dataset.tab = key;
			b.onclick = () => pickTab(key);
			return b;
		}));
		bar.dataset.tab = shown.tab;
		pane.className = shown.tab === "flame" || shown.tab === "events" ? "full" : "";
		pane.replaceChildren();
		listing = flame = null;
	}
	return tabs[shown.tab][1](pane, mine).then(() => { if (mine === run) document.body.dataset.drawn = shown.tab + " " + mine; });
}
function pickTab(key) { shown.tab = key; el("tabs").dataset.tab = ""; return drawTab(); }

/* ---- the timeline: an overview, and a row for each thread ---- */
const shown = { from: 0, to: 1, probe: -1, picked: -1, found: null, tab: "summary" };
const ROW_LANE = 12, ROW_PAD = 6, COLORS_OF_EVENTS = 8;
let colors = {};
function readColors() {
	const style = getComputedStyle(document.body), of = (name) => style.getPropertyValue("--" + name).trim();
	colors = { event: Array.from({ length: COLORS_OF_EVENTS }, (_, i) => of("e" + i)), ink: of("eink"), fg: of("fg"), dim: of("dim"), line: of("line"), bg: of("bg"), raised: of("raised"), focus: of("focus"), cold: of("h0"), hot: of("h1"), bar: of("bar"), mono: of("mono") };
}
const colorOfProbe = (p) => colors.event[p % COLORS_OF_EVENTS];
function sized(canvas, width, height) {
	const ratio = window.devicePixelRatio || 1, g = canvas.getContext("2d");
	if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
		Object.assign(canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
		canvas.style.width = width + "px";
		canvas.style.height = height + "px";
	}
	g.setTransform(ratio, 0, 0, ratio, 0, 0);
	g.clearRect(0, 0, width, height);
	g.font = "11px " + colors.mono;
	return g;
}
const gutter = () => (el("lanes").clientWidth < 600 ? 84 : 150);
const wanted = (i) => shown.probe < 0 || trace.probe[i] === shown.probe;

const highOf = (t) => (trace.lanes[t] + trace.points[t]) * ROW_LANE;
/* Positions of the rows: they differ in height, by how deep calls lie in each other. */
function layRows() {
	trace.top = new Float64Array(trace.threads.length + 1);
	for (let t = 0; t < trace.threads.length; t++) trace.top[t + 1] = trace.top[t] + highOf(t) + ROW_PAD;
	el("tall").style.height = trace.top[trace.threads.length] + 22 + "px";
}
const stepOf = (range, wide) => { const raw = range / Math.max(1, wide / 110), ten = 10 ** Math.floor(Math.log10(raw)); return [1, 2, 5, 10].map((m) => m * ten).find((s) => s >= raw); };
function drawScale(g, left, width, height) {
	const range = shown.to - shown.from, step = stepOf(range, width - left);
	g.fillStyle = colors.dim;
	g.strokeStyle = colors.line;
	g.lineWidth = 1;
	for (let t = Math.ceil(shown.from / step) * step; t <= shown.to; t += step) {
		const x = left + (t - shown.from) / range * (width - left);
		g.beginPath();
		g.moveTo(x + 0.5, 0);
		g.lineTo(x + 0.5, height);
		g.stroke();
		if (x + 70 < width) g.fillText(sinceIn(t, step), x + 3, 12);
	}
}

/* Points of one pixel are one mark, the higher the more there are; a call that is no wider than one is drawn once. */
function drawRow(g, t, y, left, width) {
	const { time, duration, order, lane, probe } = trace, range = shown.to - shown.from, scale = (width - left) / range;
	const points = new Uint32Array(width - left + 1), pointOf = new Uint16Array(width - left + 1), last = new Float64Array(LANES).fill(-1);
	const to = lower(shown.to + trace.longest[t], trace.first[t], trace.first[t + 1], order);
	for (let k = lower(shown.from, trace.first[t], trace.first[t + 1], order); k < to; k++) {
		const i = order[k], d = duration[i], begin = time[i] - (d > 0 ? d : 0);
		if (begin > shown.to || !wanted(i)) continue;
		if (d < 0) {
			if (time[i] > shown.to) continue;
			const x = Math.floor((time[i] - shown.from) * scale);
			points[x]++;
			pointOf[x] = probe[i];
			continue;
		}
		const x = Math.max(0, (begin - shown.from) * scale), end = Math.min(width - left, (time[i] - shown.from) * scale);
		if (end - x < 1 && last[lane[i]] >= Math.floor(end)) continue;
		last[lane[i]] = Math.floor(end);
		g.fillStyle = colorOfProbe(probe[i]);
		g.fillRect(left + x, y + lane[i] * ROW_LANE, Math.max(1, end - x - (end - x > 3 ? 0.5 : 0)), ROW_LANE - 1);
		if (end - x > 44) {
			const letters = Math.floor((end - x - 4) / 6.7), name = clean(trace.probes[probe[i]]);
			g.fillStyle = colors.ink;
			g.fillText(name.length > letters ? name.slice(0, letters - 1) + "\u2026" : name, left + x + 3, y + lane[i] * ROW_LANE + 9);
		}
	}
	const high = ROW_LANE - 1, top = y + trace.lanes[t] * ROW_LANE;
	for (let x = 0; x < points.length; x++) {
		if (!points[x]) continue;
		const h = Math.min(1, 0.5 + Math.log2(points[x]) / 16) * high;
		g.fillStyle = colorOfProbe(pointOf[x]);
		g.fillRect(left + x - 0.5, top + high - h, 2, h);
	}
}
function drawRows() {
	const box = el("lanes"), width = box.clientWidth, left = gutter(), height = Math.min(box.clientHeight || 60, trace.top[trace.threads.length] + 22), g = sized(el("rows"), width, height), scroll = box.scrollTop;
	drawScale(g, left, width, height);
	for (let t = 0; t < trace.threads.length; t++) {
		const y = trace.top[t] - scroll + 20;
		if (y + trace.top[t + 1] - trace.top[t] < 18 || y > height) continue;
		drawRow(g, t, y, left, width);
		g.fillStyle = colors.bg;
		g.fillRect(0, y - 2, left - 4, trace.top[t + 1] - trace.top[t]);
		g.fillStyle = colors.fg;
		const name = nameOfThread(t), most = Math.floor((left - 14) / 6.7);
		g.fillText(name.length > most ? "\u2026" + name.slice(1 - most) : name, 8, y + 9);
		g.fillStyle = colors.line;
		g.fillRect(0, y + trace.top[t + 1] - trace.top[t] - 4, width, 1);
	}
	markPicked(g, left, width, scroll);
	if (drag && drag.now !== undefined) {
		g.fillStyle = colors.focus;
		g.globalAlpha = 0.2;
		g.fillRect(Math.min(drag.x, drag.now), 0, Math.abs(drag.now - drag.x), height);
		g.globalAlpha = 1;
	}
}
function markPicked(g, left, width, scroll) {
	const i = shown.picked;
	if (i < 0) return;
	const scale = (width - left) / (shown.to - shown.from), d = Math.max(0, trace.duration[i]);
	const x = left + (trace.time[i] - d - shown.from) * scale, end = left + (trace.time[i] - shown.from) * scale, t = trace.thread[i];
	if (end < left || x > width) return;
	g.strokeStyle = colors.focus;
	g.lineWidth = 2;
	const lane = trace.duration[i] < 0 ? trace.lanes[t] : trace.lane[i];
	g.strokeRect(Math.max(left, x) - 2, trace.top[t] - scroll + 18 + lane * ROW_LANE, Math.max(4, Math.min(width, end) - Math.max(left, x) + 3), ROW_LANE + 2);
}
/* How many events there are over the whole time; counted once for each width and filter. */
let counted = null;
async function countOverview(width) {
	const key = width + "/" + shown.probe, bins = new Float64Array(width), scale = (width - 1) / (trace.end - trace.begin);
	counted = { key, bins };
	for (let i = 0; i < trace.n; i++) {
		if (wanted(i)) bins[Math.floor((trace.time[i] - trace.begin) * scale)]++;
		if (i % SLICE === SLICE - 1) { await pause(); if (counted.key !== key) return; }
	}
	drawOverview();
}
function drawOverview() {
	const width = el("lanes").clientWidth, height = 34, g = sized(el("overview"), width, height);
	if (!counted || counted.key !== width + "/" + shown.probe) { countOverview(width); return; }
	let most = 1;
	for (const n of counted.bins) most = Math.max(most, n);
	g.fillStyle = colors.bar;
	counted.bins.forEach((n, x) => { if (n) { const h = 2 + Math.log2(1 + n) / Math.log2(1 + most) * (height - 6); g.fillRect(x, height - h, 1, h); } });
	const scale = width / (trace.end - trace.begin), x = (shown.from - trace.begin) * scale, w = Math.max(2, (shown.to - shown.from) * scale);
	g.strokeStyle = colors.focus;
	g.lineWidth = 2;
	g.strokeRect(x + 1, 1, w - 2, height - 2);
}
let drawing = false;
function draw() {
	if (drawing) return;
	drawing = true;
	requestAnimationFrame(() => { drawing = false; drawOverview(); drawRows(); });
}

/* ---- moving ---- */
function sayRange() {
	const n = lower(shown.to, 0, trace.n) - lower(shown.from, 0, trace.n);
	const step = (shown.to - shown.from) / 1000;
	el("range").textContent = sinceIn(shown.from, step, 100 * step) + " \u2013 " + sinceIn(shown.to, step, 100 * step) + "  (" + span(shown.to - shown.from) + ", " + n.toLocaleString("en-US") + (n === 1 ? " event" : " events") + ")" + (shown.probe >= 0 ? " \u00b7 only " + clean(trace.probes[shown.probe]) : "");
	el("all").disabled = shown.from <= trace.begin && shown.to >= trace.end + 1;
	el("every").hidden = shown.probe < 0;
}
let changing = 0;
function show(from, to) {
	const least = Math.min(100, trace.end - trace.begin), width = Math.max(least, Math.min(trace.end + 1 - trace.begin, to - from));
	shown.from = Math.max(trace.begin, Math.min(trace.end + 1 - width, from));
	shown.to = shown.from + width;
	sayRange();
	draw();
	clearTimeout(changing);
	changing = setTimeout(drawTab, 120); /* the views follow when the hand rests */
}
const showAll = () => show(trace.begin, trace.end + 1);
function zoom(by, at) { const center = at === undefined ? (shown.from + shown.to) / 2 : at; show(center - (center - shown.from) * by, center + (shown.to - center) * by); }
const move = (part) => show(shown.from + (shown.to - shown.from) * part, shown.to + (shown.to - shown.from) * part);
function only(probe) {
	shown.probe = shown.probe === probe ? -1 : probe;
	sayRange();
	draw();
	drawTab();
}
async function pick(i, follow) {
	shown.picked = i;
	if (follow && i >= 0 && (trace.time[i] < shown.from || trace.time[i] > shown.to)) { const w = shown.to - shown.from; show(trace.time[i] - w / 2, trace.time[i] + w / 2); }
	const row = el("lanes"), t = i < 0 ? 0 : trace.thread[i];
	if (follow && i >= 0 && (trace.top[t] < row.scrollTop || trace.top[t + 1] + 20 > row.scrollTop + row.clientHeight)) row.scrollTop = trace.top[t];
	draw();
	if (i >= 0) say(i); else hint();
	if (shown.tab === "events") markRow(follow);
	document.body.dataset.picked = i;
}
const hint = () => el("said").replaceChildren(make("div", "dim", "A click, n and p pick an event; drag over a part to zoom; ? lists the keys"));
let saying = 0;
async function say(i) {
	const run = ++saying, text = await textOf(i);
	if (run !== saying) return;
	el("said").replaceChildren(make("div", "", text), make("div", "dim", [since(trace.time[i], 1), trace.duration[i] >= 0 ? "took " + span(trace.duration[i]) : "", clock(trace.time[i])].filter(Boolean).join(" \u00b7 ")));
	showDetail(i, text);
}
/* The event under the pointer, or the nearest within some pixels. */
function eventAt(x, y) {
	const box = el("lanes"), left = gutter(), range = shown.to - shown.from, perPixel = range / (box.clientWidth - left), at = shown.from + (x - left) * perPixel, down = y + box.scrollTop - 20;
	let t = 0;
	while (t < trace.threads.length && trace.top[t + 1] <= down) t++;
	if (x < left || down < 0 || t >= trace.threads.length) return -1;
	const lane = Math.floor((down - trace.top[t]) / ROW_LANE), to = lower(at + trace.longest[t] + 5 * perPixel, trace.first[t], trace.first[t + 1], trace.order);
	let best = -1, least = 5 * perPixel;
	for (let k = lower(at - 5 * perPixel, trace.first[t], trace.first[t + 1], trace.order), tried = 0; k < to && tried < 200000; k++, tried++) {
		const i = trace.order[k], d = trace.duration[i], begin = trace.time[i] - Math.max(0, d);
		if (!wanted(i) || (d >= 0 ? trace.lane[i] : trace.lanes[t]) !== lane) continue;
		const away = at < begin ? begin - at : at > trace.time[i] ? at - trace.time[i] : 0;
		if (away < least) { best = i; least = away; }
		if (!away) break;
	}
	return best;
}
let drag = null;
function watchLanes() {
	const rows = el("rows"), box = el("lanes"), over = el("overview");
	const x = (e) => e.clientX - box.getBoundingClientRect().left, timeAt = (px) => shown.from + (px - gutter()) / (box.clientWidth - gutter()) * (shown.to - shown.from);
	rows.addEventListener("pointerdown", (e) => { drag = { x: x(e) }; rows.setPointerCapture(e.pointerId); });
	rows.addEventListener("pointermove", (e) => {
		if (drag) { if (Math.abs(x(e) - drag.x) > 4) { drag.now = x(e); draw(); } return; }
		const i = eventAt(x(e), e.clientY - rows.getBoundingClientRect().top);
		if (i >= 0 && i !== hovered) say(hovered = i);
	});
	rows.addEventListener("pointerup", (e) => {
		const was = drag;
		drag = null;
		if (was && was.now !== undefined) { const [a, b] = [was.x, was.now].sort((p, q) => p - q); show(timeAt(a), timeAt(b)); return; }
		box.focus({ preventScroll: true });
		pick(eventAt(x(e), e.clientY - rows.getBoundingClientRect().top));
	});
	box.addEventListener("scroll", draw);
	box.addEventListener("wheel", (e) => {
		if (!e.ctrlKey && !e.metaKey && Math.abs(e.deltaX) <= Math.abs(e.deltaY)) return;
		e.preventDefault();
		if (e.ctrlKey || e.metaKey) zoom(Math.exp(e.deltaY / 300), timeAt(x(e))); else move(e.deltaX / box.clientWidth);
	}, { passive: false });
	const center = (e) => { if (!e.buttons) return; const t = trace.begin + x(e) / box.clientWidth * (trace.end - trace.begin), w = shown.to - shown.from; show(t - w / 2, t + w / 2); };
	over.addEventListener("pointerdown", (e) => { over.setPointerCapture(e.pointerId); center(e); });
	over.addEventListener("pointermove", center);
}
let hovered = -1;

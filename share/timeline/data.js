/* ---- the events: columns, unpacked part by part ---- */
const el = (id) => document.getElementById(id);
const { make, clean, amount } = dynprobeFlame;
const channel = new MessageChannel(), resume = [];
channel.port1.onmessage = () => resume.shift()();
/* Lets the browser draw and listen. Every loop over events does so now and then. */
const pause = () => new Promise((done) => { resume.push(done); channel.port2.postMessage(0); });
const SLICE = 65536; /* events between two pauses */

const packed = [...document.querySelectorAll("script.part")].map((node) => { node.remove(); return node; });
const bytesOfPart = async (i) => new Uint8Array(await (await dynprobeFlame.bytesOf(packed[i].textContent.trim())).arrayBuffer());
const textOfPart = async (i) => dynprobeFlame.textOf(packed[i].textContent.trim());

class Numbers { /* seven bits a byte, the lowest first */
	constructor(bytes) { this.bytes = bytes; this.at = 0; }
	next() {
		let v = 0, by = 1, byte;
		do { byte = this.bytes[this.at++]; v += (byte & 127) * by; by *= 128; } while (byte > 127);
		return v;
	}
}

const trace = { n: 0 };
async function loadEvents(said) {
	const about = JSON.parse(await textOfPart(packed.length - 1)), n = about.n;
	Object.assign(trace, about, { beginText: about.begin, time: new Float64Array(n), thread: new Uint32Array(n), probe: new Uint16Array(n), duration: new Float64Array(n), stack: new Uint32Array(n), timed: new Uint8Array(about.probes.length) });
	let last = 0;
	for (let from = 0, part = 0; from < n; from += about.part, part++) {
		const numbers = new Numbers(await bytesOfPart(2 * part)), to = Math.min(n, from + about.part);
		for (let i = from; i < to; i++) trace.time[i] = last += numbers.next();
		for (let i = from; i < to; i++) trace.thread[i] = numbers.next();
		for (let i = from; i < to; i++) trace.probe[i] = numbers.next();
		for (let i = from; i < to; i++) { const d = numbers.next(); trace.duration[i] = d - 1; if (d) trace.timed[trace.probe[i]] = 1; }
		for (let i = from; i < to; i++) trace.stack[i] = numbers.next();
		said(to / n);
		await pause();
	}
	trace.begin = 0;
	trace.end = n ? trace.time[n - 1] : 0;
	for (let i = 0; i < n; i++) {
		if (trace.duration[i] >= 0) trace.begin = Math.min(trace.begin, trace.time[i] - trace.duration[i]);
		if (i % SLICE === SLICE - 1) await pause();
	}
	if (trace.end <= trace.begin) trace.end = trace.begin + 1;
	await loadStacks();
	await sortByThread();
}

/* Frames of a function are one in the flame graph: "f+0x12/0x40 [module]" without what stands behind the name. */
const functionOf = (frame) => frame.replace(/\+0x[0-9a-f]+(\/0x[0-9a-f]+)?( \[.*| at .*)?$/, "");
async function loadStacks() {
	const n = trace.nodes, numbers = new Numbers(await bytesOfPart(packed.length - 2));
	trace.parent = new Uint32Array(n);
	trace.frame = new Uint32Array(n);
	for (let i = 1; i < n; i++) trace.parent[i] = numbers.next();
	for (let i = 1; i < n; i++) trace.frame[i] = numbers.next();
	const number = new Map(), functions = [], of = new Uint32Array(trace.frames.length);
	for (let i = 0; i < trace.frames.length; i++) {
		const name = functionOf(trace.frames[i]);
		if (!number.has(name)) { number.set(name, functions.length); functions.push(name); }
		of[i] = number.get(name);
		if (i % 8192 === 8191) await pause();
	}
	/* The tree of functions: its node for each node of the tree of frames. */
	const merged = new Uint32Array(n), known = new Map(), tree = { parent: [0], name: [-1] };
	for (let i = 1; i < n; i++) {
		const key = merged[trace.parent[i]] * functions.length + of[trace.frame[i]];
		if (!known.has(key)) { known.set(key, tree.name.length); tree.parent.push(merged[trace.parent[i]]); tree.name.push(of[trace.frame[i]]); }
		merged[i] = known.get(key);
		if (i % 8192 === 8191) await pause();
	}
	Object.assign(trace, { merged, tree, functions });
}

/* The events of each thread, in the order of time; and how deep each call lies in the others. */
const LANES = 8;
async function sortByThread() {
	const n = trace.n, threads = trace.threads.length, count = new Uint32Array(threads + 1);
	for (let i = 0; i < n; i++) { count[trace.thread[i] + 1]++; if (i % SLICE === SLICE - 1) await pause(); }
	for (let t = 0; t < threads; t++) count[t + 1] += count[t];
	trace.first = count.slice();
	trace.order = new Uint32Array(n);
	trace.lane = new Uint8Array(n);
	trace.lanes = new Uint8Array(threads); /* of calls; events without a duration have one below them */
	trace.points = new Uint8Array(threads);
	trace.longest = new Float64Array(threads);
	const at = count.slice(0, threads);
	for (let i = 0; i < n; i++) { trace.order[at[trace.thread[i]]++] = i; if (i % SLICE === SLICE - 1) await pause(); }
	let done = 0;
	for (let t = 0; t < threads; t++) {
		const open = []; /* begins of the calls around the one at hand; from the last end to the first */
		for (let k = trace.first[t + 1] - 1; k >= trace.first[t]; k--) {
			const i = trace.order[k], d = trace.duration[i], begin = trace.time[i] - Math.max(0, d);
			while (open.length && open[open.length - 1] > begin) open.pop();
			trace.lane[i] = Math.min(LANES - 1, open.length);
			if (d >= 0) {
				open.push(begin);
				trace.lanes[t] = Math.max(trace.lanes[t], trace.lane[i] + 1);
				trace.longest[t] = Math.max(trace.longest[t], d);
			} else {
				trace.points[t] = 1;
			}
			if (++done % SLICE === 0) await pause();
		}
	}
}

/* The first of order[from, to) whose time is at least t; without `order` of all events. */
function lower(t, from, to, order) {
	while (from < to) {
		const middle = (from + to) >> 1;
		if (trace.time[order ? order[middle] : middle] < t) from = middle + 1; else to = middle;
	}
	return from;
}

/* ---- texts ---- */
const kept = new Map();
async function linesOf(part) {
	if (kept.has(part)) return kept.get(part);
	const lines = (await textOfPart(2 * part + 1)).split("\n");
	kept.set(part, lines);
	if (kept.size > 12) kept.delete(kept.keys().next().value);
	return lines;
}
const knownText = (i) => { const lines = kept.get(Math.floor(i / trace.part)); return lines && lines[i % trace.part]; };
async function textOf(i) { return (await linesOf(Math.floor(i / trace.part)))[i % trace.part]; }
function stackOf(i) {
	const frames = [];
	for (let s = trace.stack[i]; s; s = trace.parent[s]) frames.push(trace.frames[trace.frame[s]]);
	return frames;
}
const nameOfThread = (t) => { const [pid, tid, comm] = trace.threads[t]; return clean(comm) + " " + (trace.pids > 1 ? pid + "/" : "") + tid; };
const span = (ns) => amount(ns, "ns");
function since(ns, step) { /* a time since the first event, with as many digits as the step needs */
	const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10((step || 1000) / 1e9))));
	return (ns < 0 ? "\u2212" : "+") + (Math.abs(ns) / 1e9).toFixed(digits) + " s";
}
function sinceIn(ns, step, size = step) { /* the same, in a unit that suits `size` */
	const [by, unit] = size >= 1e8 ? [1e9, "s"] : size >= 1e5 ? [1e6, "ms"] : size >= 100 ? [1e3, "\u00b5s"] : [1, "ns"];
	const text = (Math.abs(ns) / by).toLocaleString("en-US", { maximumFractionDigits: Math.max(0, Math.ceil(-Math.log10(step / by) - 1e-9)) });
	return (ns < 0 && text !== "0" ? "\u2212" : "+") + text + " " + unit;
}
function clock(ns) { /* the time of day */
	const all = BigInt(trace.beginText) + BigInt(Math.round(ns)), date = new Date(Number(all / 1000000n));
	return date.toLocaleDateString("sv") + " " + date.toLocaleTimeString("sv") + "." + String(all % 1000000000n).padStart(9, "0");
}

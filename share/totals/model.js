/* ---- the run: its rows, what they are of, and the columns of their table ---- */
const el = (id) => document.getElementById(id);
const { make, clean, amount } = dynprobeFlame;
const run = { rows: [], rounds: [], calls: [], profiles: [], notes: [], summary: null };
const count = (n, what) => `${number(n)} ${what}${n === 1 ? "" : what.endsWith("s") ? "es" : "s"}`;
const span = (ns) => amount(ns, "ns");
const number = (v) => (Number(v) || 0).toLocaleString("en-US", { maximumFractionDigits: Math.abs(v) < 100 ? 2 : 0 });
const shownAs = (v, unit) => (unit === "ns" ? span(v) : number(v));

function read(data) {
	for (const line of data.lines) {
		if (line.type === "answer" && (typeof line.probe !== "string" || line.hits === undefined)) data.damaged = true;
		else if (line.type === "answer") (line.final === false ? run.rounds : run.rows).push(line);
		else if (line.type === "calls" && (isStack(line.path) || typeof line.function === "string")) run.calls.push(line);
		else if (line.type === "profile") run.profiles.push(line);
		else if (line.type === "note") run.notes.push(String(line.text));
		else if (line.type === "summary") run.summary = line;
	}
	/* Of --interval there are trees so far, too: the last one is the whole. */
	const key = (c) => JSON.stringify(c.path || c.function), last = new Map();
	for (const c of run.calls) { last.delete(key(c)); last.set(key(c), c); }
	run.calls = [...last.values()];
	run.file = data.file;
	if (data.damaged) run.notes.push("some lines of the file are damaged and left out");
	if (data.more) run.notes.push("the file has more rows than the page");
	if (!run.rows.length && run.rounds.length) run.notes.push("the run has no rows of its end: there are those of its intervals only");
	noteLosses();
}
function noteLosses() {
	const s = run.summary, sum = (what) => run.rows.reduce((n, r) => n + Number(r[what] || 0), 0);
	if (s && s.lost && s.lost.total > 0) run.notes.push(count(s.lost.total, "hit") + (s.lost.total === 1 ? " was lost" : " were lost"));
	if (s && s.refused > 0) run.notes.push(count(s.refused, "place") + " could not be probed: see Run");
	if (sum("unpaired")) run.notes.push(count(sum("unpaired"), "return") + " without their entry are not in the rows");
	if (sum("crowded")) run.notes.push(count(sum("crowded"), "hit") + " of further keys are not in the rows");
	for (const p of run.profiles) if (p.lost > 0) run.notes.push(count(p.lost, "sample") + " of " + p.pid + " were lost");
}

/* ---- what the run was about ---- */
const nameOf = (row) => row.title || row.probe;
function partsOf(row) { return row.aggregations || (row.value === undefined ? [] : [row]); }
function programs() {
	const list = run.summary && run.summary.processes && run.summary.processes.length ? run.summary.processes : run.profiles;
	const known = new Map(list.filter((p) => p.pid > 0).map((p) => [p.pid, p.comm]));
	for (const r of run.rows) if (r.pid && !known.has(r.pid)) known.set(r.pid, "");
	const all = [...known], names = [...new Set(all.map(([, comm]) => comm).filter(Boolean))];
	if (!all.length) return "";
	if (all.length === 1) return names.length ? `${names[0]} (pid ${all[0][0]})` : `pid ${all[0][0]}`;
	return `${names.slice(0, 3).join(", ")}${names.length > 3 ? ", …" : ""} (${all.length} processes)`.trim();
}
function measured() {
	const rows = run.rows.length ? run.rows : run.rounds, names = [...new Set(rows.map(nameOf))], first = rows[0];
	const at = (list) => list.slice(0, 3).join(", ") + (list.length > 3 ? ", …" : "");
	if (run.calls.length) return run.calls[0].path ? "calls below " + at([...new Set(run.calls.map((c) => c.path[0]))]) : "own time of functions";
	if (run.profiles.length) return run.profiles.some((p) => p.off_cpu) ? "time off the processor" : "samples of processor time";
	if (!first) return run.summary ? "calls" : "";
	const words = { sum: "sum", avg: "average", min: "minimum", max: "maximum" };
	const kind = (p) => { const kinds = Object.keys(words).filter((k) => p[k] !== undefined).map((k) => words[k]); return kinds.length ? kinds.join(", ") + " of " : ""; };
	const values = [...new Set(partsOf(first).map((p) => kind(p) + p.value))], what = values.length ? values.join(", ") : "hits";
	return `${what} at ${at(names)}${first.by ? " by " + first.by : first.keys ? " by " + Object.keys(first.keys).join(", ") : first.stack ? " by backtrace" : ""}`;
}

/* ---- stacks: frames outermost first, as functions; and one line of a row ---- */
const functionOf = (frame) => frame.replace(/\+0x[0-9a-f]+(\/0x[0-9a-f]+)?( \[.*| at .*)?$/, "");
const isStack = (v) => Array.isArray(v);
function stackOf(row) { return row.stack || (row.keys && Object.values(row.keys).find(isStack)) || null; }
function framesOf(stack, cut) {
	const frames = cut ? ["..."] : [];
	for (let i = stack.length - 1; i >= 0; i--) {
		frames.push(functionOf(String(stack[i].symbol || stack[i].pc || "?")));
		for (const f of (stack[i].inlined || []).slice().reverse()) frames.push(String(f.function));
	}
	return frames;
}
const placeOf = (f) => String(f.symbol || f.pc || "?") + (f.file ? ` ${f.file}:${f.line}` : "");
const keyText = (v) => (v === null ? "NULL" : isStack(v) ? framesOf(v).reverse().join(" \u2190 ") : String(v));
const textOf = (row) => [nameOf(row), row.pid, "key" in row ? keyText(row.key) : "", row.stack ? keyText(row.stack) : "", ...Object.values(row.keys || {}).map(keyText)].join(" ").toLowerCase();

/* ---- columns: { title, of(row): what is sorted by, show(value) } ---- */
function keyColumns(rows) {
	const first = rows.find((r) => r.keys || r.stack || "key" in r), columns = [{ title: "probe", text: true, of: nameOf, show: String }];
	const pids = new Set(rows.map((r) => r.pid));
	if (pids.size > 1 && !(first && first.by === "pid")) columns.push({ title: "pid", of: (r) => r.pid, show: (v) => (v === null ? "all" : String(v)) });
	if (!first) return columns;
	if (first.keys) for (const k of Object.keys(first.keys)) columns.push({ title: k, text: true, of: (r) => (r.keys || {})[k], show: keyText });
	else if (first.stack) columns.push({ title: first.by || "backtrace", text: true, of: (r) => r.stack, show: keyText });
	else columns.push({ title: first.by || "key", text: true, of: (r) => r.key, show: keyText });
	return columns;
}
function valueColumns(rows) {
	const columns = [{ title: run.profiles.some((p) => p.off_cpu) ? "waits" : run.profiles.length ? "samples" : "hits", of: (r) => Number(r.hits), show: number }];
	if (rows.some((r) => r.seconds > 0)) columns.push({ title: "rate", of: (r) => Number(r.hits) / r.seconds, show: (v) => amount(v < 100 ? Math.round(v * 100) / 100 : Math.round(v), "/s") });
	const several = rows.some((r) => r.aggregations);
	partsOf(rows[0]).forEach((part, i) => {
		for (const what of ["sum", "avg", "min", "max", "p50", "p90", "p99"]) {
			const of = (r) => { const p = partsOf(r)[i]; return p && p[what] !== undefined ? Number(p[what]) : undefined; };
			if (rows.some((r) => of(r) !== undefined)) columns.push({ title: several ? `${what}(${part.value})` : what, of, show: (v) => shownAs(v, part.unit) });
		}
	});
	return columns;
}
function order(column, down) {
	return (a, b) => {
		const x = column.of(a), y = column.of(b);
		if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
		const by = typeof x === "number" && typeof y === "number" ? x - y : column.show(x).localeCompare(column.show(y), "en", { numeric: true });
		return down ? -by : by;
	};
}

/* ---- the tree of stacks, as flame.js takes it ---- */
function flameOf(weights, unit, title) {
	const names = [], known = new Map(), root = { children: new Map(), total: 0 }, nodes = [];
	const numberOf = (f) => { if (!known.has(f)) { known.set(f, names.length); names.push(f); } return known.get(f); };
	for (const [frames, weight] of weights) {
		if (!(weight > 0)) continue;
		let at = root;
		root.total += weight;
		for (const f of frames.slice(0, 512)) {
			if (!at.children.has(f)) at.children.set(f, { children: new Map(), total: 0 });
			at = at.children.get(f);
			at.total += weight;
		}
	}
	let narrow = 0;
	const todo = [], open = (node, depth) => { for (const [name, child] of [...node.children].sort((a, b) => (a[0] < b[0] ? 1 : -1))) todo.push([name, depth, child]); };
	for (open(root, 0); todo.length;) {
		const [name, depth, node] = todo.pop();
		if (node.total < root.total / 12000) { narrow++; continue; }
		nodes.push(numberOf(name), depth, node.total);
		open(node, depth + 1);
	}
	return { title, unit, total: root.total, narrow, names, nodes };
}
/* What frames may be as wide as: hits, and each sum. */
function weightsOf() {
	if (run.calls.some((c) => c.path)) return [{ name: "own time", unit: "ns", list: () => run.calls.filter((c) => c.path).map((c) => [c.path.map(String), Number(c.self_ns)]) }];
	const rows = run.rows.filter(stackOf), list = (of) => () => rows.map((r) => [framesOf(stackOf(r), r.cut), of(r)]), found = [];
	if (!rows.length) return [];
	partsOf(rows[0]).forEach((part, i) => {
		if (part.sum !== undefined) found.push({ name: "sum of " + part.value, unit: part.unit || "in all", list: list((r) => Number(partsOf(r)[i].sum)) });
	});
	const hits = { name: run.profiles.length ? "samples" : "hits", unit: run.profiles.length ? "samples" : "hits", list: list((r) => Number(r.hits)) };
	return run.profiles.some((p) => p.off_cpu) ? [...found, { ...hits, name: "waits", unit: "waits" }] : [hits, ...found];
}

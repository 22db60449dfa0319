/* Begins: in a page, or in an SVG whose picture then gives way. */
(async () => {
	let host = document.getElementById("flame");
	if (typeof DecompressionStream === "undefined") return; /* a browser from before 2023 has the picture of an SVG only */
	const data = JSON.parse(await dynprobeFlame.textOf(document.getElementById("data").textContent.trim()));
	if (!host) {
		const svg = document.documentElement, inside = document.createElementNS("http://www.w3.org/2000/svg", "foreignObject");
		document.getElementById("picture").remove();
		svg.removeAttribute("viewBox");
		for (const node of [svg, inside]) { node.setAttribute("width", "100%"); node.setAttribute("height", "100%"); }
		svg.append(inside);
		host = dynprobeFlame.make("div", "flame-full");
		inside.append(host);
	} else {
		document.title = dynprobeFlame.clean(data.title);
	}
	const flame = new dynprobeFlame.Flame(host, data);
	flame.canvas.focus({ preventScroll: true });
	document.documentElement.dataset.ready = "yes";
})();

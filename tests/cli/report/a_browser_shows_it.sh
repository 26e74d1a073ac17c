# In a browser, at the widths of a phone, a tablet and a desk, light and dark: nothing is wider than the
# window, no box has to be scrolled, no text of a picture is covered by another, all text is legible and
# stands out from what is behind it, and no name has become a tag. The case needs a browser.
for browser in chromium-headless-shell chromium chromium-browser google-chrome; do command -v "$browser" >/dev/null && break; done
command -v "$browser" >/dev/null || { echo "skipped: no browser; to run it: apt-get install chromium" >&2; exit 77; }
case ${sanitize:-} in *thread*) echo "skipped: not under the thread sanitizer" >&2; exit 77 ;; esac
"$phema" gen -q --count 16 '<img src=x onerror=document.title=1>' >/dev/null
printf '0.05,3\n0.1,2\n0.15,2.5\n' >scores.csv
"$phema" report -q --sigma-rel 0.02,0.08,0.15,0.2 --scores scores.csv \
    --title "a long title with no blank: $(printf 'x%.0s' $(seq 90))" \
    '<img src=x onerror=document.title=1>' -o page.html
cat >measure.html <<'EOT'
<iframe src="page.html" width="390" height="800"></iframe>
<iframe src="page.html" width="800" height="800"></iframe>
<iframe src="page.html" width="1280" height="800"></iframe>
<pre id="out"></pre>
<script>
function light(color) {
    const part = color.match(/[\d.]+/g).slice(0, 3).map(Number).map(
        c => c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
}
function behind(element) {
    for (let e = element; e; e = e.parentElement) {
        const color = getComputedStyle(e).backgroundColor;
        if (e.tagName != "svg" && !/, 0\)$/.test(color) && color != "transparent") return color;
    }
    return "rgb(255,255,255)";
}
function contrast(element) {
    const style = getComputedStyle(element);
    const own = light(element.closest("svg") ? style.fill : style.color), back = light(behind(element));
    return (Math.max(own, back) + 0.05) / (Math.min(own, back) + 0.05);
}
function overlap(a, b) {
    return Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
           Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
}
function measure(frame) {
    const page = frame.contentDocument, root = page.documentElement, faults = new Set();
    for (const details of page.querySelectorAll("details")) details.open = true;
    const seen = e => e.getClientRects().length > 0;
    if (root.scrollWidth > root.clientWidth) faults.add("is too wide: " + root.scrollWidth);
    for (const box of page.querySelectorAll(".scroll"))
        if (seen(box) && box.scrollWidth > box.clientWidth) faults.add("scrolls: " + box.innerText.slice(0, 20));
    const pictures = [...page.querySelectorAll("svg[role]")].filter(seen);
    for (const picture of pictures) {
        const texts = [...picture.querySelectorAll("text")], outer = picture.getBoundingClientRect();
        for (const text of texts) {
            const box = text.getBoundingClientRect();
            if (box.left < outer.left || box.right > outer.right) faults.add("is cut: " + text.textContent);
            if (Math.min(box.height, box.width) < 6 && text.textContent.length > 1) faults.add("is too small: " + text.textContent);
            for (const other of texts)
                if (other !== text && overlap(box, other.getBoundingClientRect()))
                    faults.add("is covered: " + text.textContent);
        }
    }
    for (const text of page.querySelectorAll("h1,h2,p,td,th,li,pre,summary,svg text"))
        if (seen(text) && contrast(text) < 4.5) faults.add("is faint: " + text.textContent.slice(0, 20));
    const scheme = frame.contentWindow.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    const columns = [...page.querySelectorAll("#snapshots details th")].filter(seen).map(e => e.textContent);
    return [frame.width, scheme, pictures.length + " pictures", page.querySelectorAll("img,script").length + " tags",
            columns.join("|"), faults.size ? [...faults].join("; ") : "all is visible"].join(", ");
}
window.onload = function () {
    document.getElementById("out").textContent = [...document.querySelectorAll("iframe")].map(measure).join("\n") + "\n";
};
</script>
EOT
for scheme in 1 0; do
    "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --allow-file-access-from-files \
        --blink-settings=preferredColorScheme=$scheme --user-data-dir="$PWD/profile" \
        --virtual-time-budget=5000 --dump-dom "file://$PWD/measure.html" 2>/dev/null |
        grep -E ', (light|dark), ' | sed 's/<[^>]*>//g'
done

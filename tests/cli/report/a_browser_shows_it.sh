# In a browser, at the widths of a phone and of a desk, no part of the page is wider than the window. Wider
# parts scroll in their own boxes, and no name has become a tag. The case needs a browser.
for browser in chromium chromium-browser google-chrome; do command -v "$browser" >/dev/null && break; done
command -v "$browser" >/dev/null || { echo "skipped: no browser; to run it: apt-get install chromium" >&2; exit 77; }
case ${sanitize:-} in *thread*) echo "skipped: not under the thread sanitizer" >&2; exit 77 ;; esac
"$phema" gen -q --count 16 '<img src=x onerror=document.title=1>' >/dev/null
"$phema" report -q --sigma-rel 0.02,0.08,0.15 --title "a long title with no blank: $(printf 'x%.0s' $(seq 90))" \
    '<img src=x onerror=document.title=1>' -o page.html
cat >measure.html <<'EOT'
<iframe id="phone" src="page.html" width="360" height="800"></iframe>
<iframe id="desk" src="page.html" width="1200" height="800"></iframe>
<pre id="out"></pre>
<script>
window.onload = function () {
    for (const id of ["phone", "desk"]) {
        const frame = document.getElementById(id), page = frame.contentDocument;
        const root = page.documentElement;
        const pictures = page.querySelectorAll("svg[role]");
        let least = 1e9;
        for (const text of page.querySelectorAll("svg text"))
            least = Math.min(least, text.getBoundingClientRect().height);
        document.getElementById("out").textContent += [id,
            root.scrollWidth <= root.clientWidth ? "fits" : "is too wide: " + root.scrollWidth,
            pictures.length + " pictures", page.querySelectorAll("img,script").length + " tags",
            least >= 7 ? "legible" : "too small: " + least,
            getComputedStyle(page.body).backgroundColor].join(", ") + "\n";
    }
};
</script>
EOT
"$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --allow-file-access-from-files \
    --user-data-dir="$PWD/profile" --virtual-time-budget=5000 --dump-dom "file://$PWD/measure.html" \
    2>/dev/null | grep -E '(phone|desk), ' | sed 's/<[^>]*>//g'

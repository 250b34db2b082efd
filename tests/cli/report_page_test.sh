#!/bin/sh
# The report's page in headless Chromium: no console message, and nothing wider than the window at phone and desktop width, light and dark.
#   report_page_test.sh AIT DATA     exit code 77: skipped, there is no Chromium
set -u
ait=$1
data=$2
for browser in chromium chromium-browser google-chrome none; do
  [ "$browser" = none ] && { echo "skipped: no chromium on this machine"; exit 77; }
  command -v "$browser" >/dev/null && break
done
work=$(mktemp -d "${TMPDIR:-/tmp}/ait-page.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
HOME=$work XDG_CACHE_HOME=$work
export HOME XDG_CACHE_HOME
"$ait" tune "$data/models/digits/digits.pt2" --data "$data/models/digits/digits-test.npz" --batch 8 --budget 2s --record none -q -o d.ait \
  >/dev/null || exit 1
"$ait" report d.ait --html page.html -q || exit 1
grep -q 'Roofline' page.html || { echo "the page has no roofline"; exit 1; }
failures=0

# The page runs no script: a copy measures itself, in a frame of the width (a window of the browser has a least width).
sed -e '/Content-Security-Policy/d' -e 's|</body>|<script>onload = () => parent.postMessage(document.documentElement.scrollWidth + " " + innerWidth + " " + matchMedia("(prefers-color-scheme: dark)").matches, "*")</script></body>|' page.html >measured.html
show() { # SCHEME FILE: 0 is dark, 1 is light
  "$browser" --headless --no-sandbox --disable-gpu --blink-settings=preferredColorScheme="$1" --window-size=1400,900 --virtual-time-budget=3000 \
    --enable-logging=stderr --dump-dom "file://$work/$2" >dom 2>log || { echo "chromium failed"; tail -3 log; exit 1; }
  if grep 'CONSOLE' log; then failures=$((failures + 1)); fi
}
for scheme in 0 1; do
  show $scheme page.html
  grep -q '</html>' dom || { echo "an empty page"; failures=$((failures + 1)); }
  for width in 360 1280; do
    cat >frame.html <<END
<!doctype html><link rel="icon" href="data:,"><body><script>onmessage = e => document.body.setAttribute("data-widths", e.data)</script>
<iframe src="measured.html" style="width:${width}px;height:20000px;border:0"></iframe></body>
END
    show $scheme frame.html
    widths=$(sed -n 's/.*data-widths="\([^"]*\)".*/\1/p' dom)
    dark=$([ $scheme = 0 ] && echo true || echo false)
    [ "$widths" = "$width $width $dark" ] || { echo "at $width px, scheme $scheme: content, window, dark are '$widths'"; failures=$((failures + 1)); }
  done
done
exit $((failures > 0))

// Command pictures makes docs/images from the real program: it starts `kappactl dev`, deploys jobs, runs `kappactl watch` and
// `kappactl demo` on a pseudo-terminal, and writes what their screens show as SVG. Run it with `make pictures`.
//
//	kappactl ──pseudo-terminal──▶ emulator ──cells──▶ svg.go ──▶ docs/images/*.svg
//
// Nothing is drawn by hand: numbers, times and words are those of that run.
package main

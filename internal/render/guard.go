package render

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/kappactl/kappactl/internal/job"
)

// Guard returns a writer that protects the terminal behind w from control sequences in untrusted text. Of control
// sequences only colours pass. Other characters that job.Steers reports are written as a middle dot or, if escape is
// set, as their \uXXXX escape for machine formats.
func Guard(w io.Writer, escape bool) io.Writer { return &guard{w: w, escape: escape} }

type guard struct {
	w      io.Writer
	escape bool
	rest   []byte // start of a character that the last Write split
}

var colour = regexp.MustCompile(`^\x1b\[[0-9;]*m`)

// Write writes the safe form of p and reports all of p as written.
func (g *guard) Write(p []byte) (int, error) {
	in := slices.Concat(g.rest, p)
	g.rest = nil
	var out bytes.Buffer
	for len(in) > 0 {
		if in[0] == 0x1b {
			if sequence := colour.Find(in); sequence != nil && !g.escape {
				out.Write(sequence)
				in = in[len(sequence):]
				continue
			}
		}
		if !utf8.FullRune(in) {
			g.rest = bytes.Clone(in)
			break
		}
		r, size := utf8.DecodeRune(in)
		switch {
		case !job.Steers(r):
			out.Write(in[:size])
		case g.escape:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			out.WriteRune('·')
		}
		in = in[size:]
	}
	if _, err := g.w.Write(out.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

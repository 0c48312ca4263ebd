package tui

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess"
)

// warnedFor is how long a warning must be gone before it is printed again.
const warnedFor = time.Minute

// warnings are those that were not seen in the last minute. One that only counts on is the same.
func (l *lines) warnings(now time.Time, name job.Name, v reprocess.VersionStatus, texts []string) []line {
	var out []line
	for _, text := range texts {
		key := string(name) + "/" + v.Version + ": " + withoutNumbers(text)
		if seen, known := l.warned[key]; !known || now.Sub(seen) >= warnedFor {
			out = append(out, line{At: now, Kind: "warning", Job: name, Status: v, Text: text})
		}
		l.warned[key] = now
	}
	return out
}

// withoutNumbers leaves out the words that begin with a digit: amounts and times.
func withoutNumbers(text string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(text), func(word string) bool {
		word = strings.TrimLeft(word, "(-")
		return word != "" && word[0] >= '0' && word[0] <= '9'
	}), " ")
}

// warningJSON prints a warning for programs.
func (l line) warningJSON(w io.Writer) error {
	return encode(w, struct {
		At      time.Time `json:"at"`
		Kind    string    `json:"kind"`
		Job     job.Name  `json:"job"`
		Version string    `json:"version"`
		Message string    `json:"message"`
	}{l.At.UTC(), l.Kind, l.Job, l.Status.Version, l.Text})
}

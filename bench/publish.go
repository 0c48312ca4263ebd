package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The markers of a section in a document.
func opening(name string) string { return "<!-- bench:" + name + " -->\n" }
func closing(name string) string { return "<!-- /bench:" + name + " -->" }

// publish puts what was measured into the documents. Sections that were not measured stay as they are, and a document
// is replaced whole or not at all.
func (r *result) publish(documents []string) error {
	var all error
	for _, path := range documents {
		if err := r.publishIn(path); err != nil {
			all = errors.Join(all, fmt.Errorf("%s: %w", path, err))
		}
	}
	return all
}

func (r *result) publishIn(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	out, plots := string(text), map[string]string{}
	for _, s := range r.sections() {
		if !strings.Contains(out, opening(s.name)) {
			continue
		}
		body := "\n" + s.text
		if s.plot != "" {
			picture := "images/bench-" + s.name + ".svg"
			plots[picture] = s.plot
			body = fmt.Sprintf("\n![%s](%s)\n", s.name, picture) + body
		}
		if out, err = replaceSection(out, s.name, body+"\n"); err != nil {
			return err
		}
	}
	for picture, svg := range plots {
		file := filepath.Join(filepath.Dir(path), filepath.FromSlash(picture))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // documents
			return err
		}
		if err := replaceFile(file, []byte(svg)); err != nil {
			return err
		}
	}
	return replaceFile(path, []byte(out))
}

// replaceSection puts body between the markers of a section.
func replaceSection(text, name, body string) (string, error) {
	before, rest, found := strings.Cut(text, opening(name))
	_, after, closed := strings.Cut(rest, closing(name))
	if !found || !closed {
		return text, fmt.Errorf("section %s has no end: want %s", name, closing(name))
	}
	return before + opening(name) + body + closing(name) + after, nil
}

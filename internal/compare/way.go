package compare

import (
	"errors"
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/yamledit"
)

// Way is one way to run a job.
type Way string

// The ways that are compared. What the archive buys would be credited to Lambda without the second one.
const (
	KappaLog     Way = "kappa_log"
	KappaArchive Way = "kappa_archive"
	Lambda       Way = "lambda"
)

// Ways are all ways in the order of the table.
func Ways() []Way { return []Way{KappaLog, KappaArchive, Lambda} }

// String is the way as people read it.
func (w Way) String() string {
	switch w {
	case KappaLog:
		return "kappa, log"
	case KappaArchive:
		return "kappa, archive"
	case Lambda:
	}
	return "lambda"
}

// Archives reports whether the way keeps an archive.
func (w Way) Archives() bool { return w != KappaLog }

// place is where the job of one measurement lives.
type place struct {
	view    job.ViewName
	archive string // file:// URL
	maxRate string // of its replay; empty: no limit
}

// dropped are the keys of a job file that a measurement sets or leaves out.
var dropped = []string{"mode", "archive", "batch", "replay", "ready", "promote", "checks", "keep_old", "auto_retire"}

// variant is the job file of one way: what changes the results stays, and the job is promoted by itself, without checks
// and without waiting for a calm lag, so that times are those of the work.
func variant(file []byte, w Way, at place) ([]byte, error) {
	replay := map[string]any{}
	if at.maxRate != "" {
		replay["max_rate"] = at.maxRate
	}
	set := map[string]any{"ready": map[string]any{"stable_for": "0s"}, "promote": "auto"}
	if w.Archives() {
		set["archive"] = map[string]any{"location": at.archive}
		replay["source"] = "archive"
	}
	if w == Lambda {
		set["mode"] = "lambda"
	}
	if len(replay) > 0 {
		set["replay"] = replay
	}
	return edit(file, func(root *yaml.Node) error {
		for _, key := range dropped {
			yamledit.Remove(root, key)
		}
		for key, value := range set {
			if err := yamledit.Put(root, key, value); err != nil {
				return err
			}
		}
		return serveAt(root, at.view)
	})
}

// serveAt lets the job serve another view, without the grants of its own.
func serveAt(root *yaml.Node, view job.ViewName) error {
	serve := yamledit.Get(root, "serve")
	if serve == nil {
		return errors.New("the job file has no serve")
	}
	yamledit.Remove(serve, "grant")
	return yamledit.Put(serve, "view", view.String())
}

// keeperJob is a job that keeps an archive of the topics and reads nothing of the past, so that the archive can be
// filled before the job that is measured reads it.
const keeperJob = "keeper"

func keeper(file []byte, at place, now time.Time) ([]byte, error) {
	at.view.Name = keeperJob
	text, err := variant(file, KappaArchive, at)
	if err != nil {
		return nil, err
	}
	return edit(text, func(root *yaml.Node) error {
		if err := yamledit.Put(root, "job", keeperJob); err != nil {
			return err
		}
		// At once: by default records wait an hour for more of them.
		roll := map[string]any{"every": "1s"}
		if err := yamledit.Put(root, "archive", map[string]any{"location": at.archive, "roll": roll}); err != nil {
			return err
		}
		return yamledit.Put(root, "replay", map[string]any{"start": now.UTC().Format(time.RFC3339), "source": "log"})
	})
}

// edit changes the top-level mapping of a job file.
func edit(file []byte, change func(root *yaml.Node) error) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(file, &doc); err != nil {
		return nil, fmt.Errorf("read the job file: %w", err)
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("the job file is not a mapping")
	}
	if err := change(doc.Content[0]); err != nil {
		return nil, err
	}
	text, err := yamledit.Encode(&doc)
	if err != nil {
		return nil, fmt.Errorf("write a job file: %w", err)
	}
	return text, nil
}

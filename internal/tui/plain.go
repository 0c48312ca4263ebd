package tui

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
)

// Plain is the interface where there is no terminal: a line when a phase changes, one for each warning, at most one
// line of progress in ten seconds, and the summary at the end, without control codes. With Options.Job it ends where
// the deployment stops by itself, because nobody is there to press a key; without, when ctx does.
func Plain(ctx context.Context, src Source, o Options) (Outcome, error) {
	p := plainWatch{src: src, options: o, lines: newLines()}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		outcome, done, err := p.look(ctx)
		if done || err != nil {
			return outcome, err
		}
		select {
		case <-ctx.Done():
			return outcome, context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// plainWatch is one run of Plain.
type plainWatch struct {
	src     Source
	options Options
	lines   lines
	lost    bool
}

// look reads once and prints what is due.
func (p *plainWatch) look(ctx context.Context) (out Outcome, done bool, err error) {
	short, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	var due []line
	var detail Detail
	if p.options.Job == "" {
		var o Overview
		if o, err = p.src.Jobs(short); err == nil {
			due = p.lines.take(p.options.Now(), o.Jobs...)
		}
	} else if detail, err = p.src.Job(short, p.options.Job); err == nil {
		due = p.lines.take(p.options.Now(), detail.Status)
	}
	if err != nil {
		return Outcome{}, false, p.fail(ctx, err)
	}
	p.found()
	for _, l := range due {
		if err := p.print(l); err != nil {
			return Outcome{}, true, err
		}
	}
	if detail.Deployment == nil {
		return Outcome{}, false, nil
	}
	code, done := detail.Deployment.Outcome("")
	if !done {
		return Outcome{}, false, nil
	}
	if p.options.JSON {
		if err := endJSON(p.options.Out, p.options.Now(), *detail.Deployment, code); err != nil {
			return Outcome{}, true, err
		}
	}
	return Outcome{Code: code, Summary: summary(detail, code, p.options.Now())}, true, nil
}

// fail says once that there is no answer; what can never be answered is returned.
func (p *plainWatch) fail(ctx context.Context, err error) error {
	var refusal *job.Refusal
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &refusal):
		return err
	case !p.lost:
		p.lost = true
		_, err := fmt.Fprintf(p.options.Notices, "no answer; waiting for one: %s\n", clean(err.Error()))
		return err
	}
	return nil
}

func (p *plainWatch) found() {
	if p.lost {
		p.lost = false
		_, _ = fmt.Fprintln(p.options.Notices, "answers again") // the next look reports a stream that is gone
	}
}

func (p *plainWatch) print(l line) error {
	if !p.options.JSON {
		_, err := fmt.Fprintln(p.options.Out, l.text())
		return err
	}
	return l.json(p.options.Out)
}

// text is a line for people.
func (l line) text() string {
	v := l.Status
	at := l.At.UTC().Format(time.RFC3339)
	if l.Kind == "warning" {
		return clean(fmt.Sprintf("%s %s %s warning: %s", at, l.Job, v.Version, l.Text))
	}
	text := fmt.Sprintf("%s %s %s %s", at, l.Job, v.Version, phaseWords(v))
	if v.Phase.Ended() {
		if v.Error != "" {
			text += ": " + v.Error
		}
		return clean(text)
	}
	if v.LagRecords != nil {
		text += ": " + behind(v.LagRecords, v.LagSeconds)
		if *v.LagRecords > 0 {
			text += " behind"
		}
	}
	if v.RecordsPerSecond != nil && *v.RecordsPerSecond > 0 {
		text += ", " + render.Rate(v.RecordsPerSecond)
	}
	if v.ETASeconds != nil && *v.ETASeconds > 0 {
		text += ", ETA " + seconds(v.ETASeconds)
	}
	if v.DeadLetters > 0 {
		text += ", " + render.Plural(v.DeadLetters, "dead letter")
	}
	if v.Paused {
		return clean(text) // the phase says so
	}
	_, _, words, why := theme{}.health(v.Verdict, v.ReasonCode, v.Reason)
	if v.Verdict == job.Lagging {
		why = "" // the numbers say it
	}
	return clean(text + ", " + words + why)
}

package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/checks"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/status"
)

// Summary returns five lines about a job, to be left in the scrollback.
func Summary(d Detail, code job.ExitCode, now time.Time) []string {
	s, dep := d.Status, d.Deployment
	v := shown(s)
	if dep != nil {
		if about := s.Find(dep.Number.String()); about != nil {
			v = about
		}
	}
	if v == nil {
		return []string{fmt.Sprintf("%s has no version", s.Job), "", "", "", "  next      kappactl deploy FILE"}[:1]
	}
	line := func(label, text string) string { return fmt.Sprintf("  %-9s %s", label, clean(text)) }
	return []string{
		clean(headline(s.Job, *v, dep, code)),
		line("records", recordsLine(*v, dep, now)),
		causeOrReaders(s, *v, dep, code, line),
		line("checks", checksWords(d.Facts[v.Version].Checks)),
		line("next", nextCommand(s, *v, dep)),
	}
}

func headline(name job.Name, v status.Version, d *ledger.Deployment, code job.ExitCode) string {
	text := fmt.Sprintf("%s %s is %s", name, v.Version, phaseWords(v))
	if d == nil {
		return text
	}
	state := strings.ReplaceAll(string(d.State), "_", " ")
	if d.State.Ended() {
		return fmt.Sprintf("%s: its deployment is %s (exit code %d)", text, state, code)
	}
	return text + ": its deployment is " + state + " and goes on"
}

func recordsLine(v status.Version, d *ledger.Deployment, now time.Time) string {
	text := render.Plural(v.Records, "record")
	if d != nil {
		until := now
		switch {
		case d.PromotedAt != nil:
			until = *d.PromotedAt
		case d.EndedAt != nil:
			until = *d.EndedAt
		}
		text += " in " + ago(until, d.CreatedAt)
	}
	return text + ", " + render.Plural(v.DeadLetters, "dead letter")
}

func causeOrReaders(s status.Job, v status.Version, d *ledger.Deployment, code job.ExitCode,
	line func(label, text string) string,
) string {
	cause := v.Error
	if d != nil && d.Message != "" && (d.ExitCode != nil || code != job.ExitOK) {
		cause = withoutExamples(d.Message)
	}
	switch {
	case cause != "" && (code != job.ExitOK || v.Phase.Ended()):
		return line("cause", cause)
	case d != nil && d.ExitCode != nil && cause != "":
		return line("cause", cause)
	case s.Live == nil:
		return line("readers", "see nothing yet: "+s.View+" is not there")
	}
	return line("readers", "see "+*s.Live+" through "+s.View)
}

func checksWords(all []Check) string {
	if len(all) == 0 {
		return "none"
	}
	var passed int
	var other []string
	for _, c := range all {
		if c.Outcome == string(checks.Pass) {
			passed++
			continue
		}
		outcome := c.Outcome
		if outcome == "" {
			outcome = "has not run"
		}
		other = append(other, c.Name+" "+outcome)
	}
	text := fmt.Sprintf("%d of %d passed", passed, len(all))
	if len(other) > 0 {
		text += "; " + strings.Join(other, ", ")
	}
	return text
}

func nextCommand(s status.Job, v status.Version, d *ledger.Deployment) string {
	switch {
	case d != nil && d.Next != "":
		return d.Next
	case d != nil && !d.State.Ended() && v.Phase == job.Verified:
		return fmt.Sprintf("kappactl promote %s %s", s.Job, v.Version)
	case d != nil && !d.State.Ended() && v.Phase == job.Live:
		return fmt.Sprintf("kappactl rollback %s   # when %s turns out wrong", s.Job, v.Version)
	case d != nil && !d.State.Ended():
		return fmt.Sprintf("kappactl watch %s", s.Job)
	}
	return fmt.Sprintf("kappactl status %s", s.Job)
}

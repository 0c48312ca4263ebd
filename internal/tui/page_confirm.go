package tui

import (
	"errors"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/status"
)

// confirmPage is an act that is being asked for.
func (m *Model) confirmPage(width, height int) []string {
	t, c := m.theme, m.confirm
	a := c.act
	head := strings.ReplaceAll(string(a.Verb), "_", " ") + " " + clean(string(a.Ref.Job))
	if c.stage != stageResolving && a.Ref.Number > 0 {
		head += " " + a.Ref.Number.String()
	}
	out := []string{"", "  " + t.paint(strong, head)}
	if c.stage != stageResolving && (a.Ref.Number > 0 || a.Verb.OfExperiment()) {
		out = append(out, "  "+t.paint(dim, "same as  ")+a.Command())
	}
	switch c.stage {
	case stageResolving:
		return append(out, "", "  "+t.paint(dim, "which version"+t.mark))
	case stageTyping:
		out = append(out, m.confirmQuestion(a, width)...)
	case stageDoing:
		out = append(out, "", "  asked an agent "+ago(m.now, c.asked)+" ago"+t.mark)
		if a.Verb == ledger.Promote || a.Verb == ledger.Rollback {
			out = append(out, t.paint(dim, "  it takes up to a minute while readers are in the way"))
		}
	case stageDone:
		out = append(out, m.confirmAnswer(width)...)
	}
	return out[:min(len(out), height)]
}

func (m *Model) confirmQuestion(a Act, width int) []string {
	t, c := m.theme, m.confirm
	out := []string{""}
	if s, ok := m.status(); ok {
		does := status.EffectOf(a.Verb, a.Ref, s).Does
		switch {
		case a.Verb.OfBatch():
			does = m.batchEffect(a)
		case a.Verb.OfExperiment():
			does = abEffect(a.Verb)
		}
		for _, line := range t.wrap(clean(does), width-4, 3) {
			out = append(out, "  "+line)
		}
		if v := s.Find(a.Ref.Number.String()); v != nil {
			sign, as, words, why := t.health(v.Verdict, v.ReasonCode, v.Reason)
			now := "  " + t.paint(dim, "now      ") + phaseWords(*v) + "  " + t.paint(as, sign+" "+words+clean(why))
			out = append(out, "", t.clip(now, width))
		}
	}
	name, of := m.wanted()
	field, lead := c.typed.text+t.cursor, "  type "
	if c.wrong {
		field += "  " + t.paint(bad, "that is not the "+of+"'s name")
	}
	if c.named {
		lead = "  the context is protected: type "
	}
	return append(out, "", t.clip(lead+t.paint(strong, clean(name))+" to confirm: "+field, width))
}

func (m *Model) confirmAnswer(width int) []string {
	t, c := m.theme, m.confirm
	text, next, as, sign := c.answer.Text(), c.answer.Next, live, t.good
	var refusal *job.Refusal
	switch {
	case errors.As(c.err, &refusal):
		text, next, as, sign = refusal.Cause, refusal.Next, bad, t.bad
	case c.err != nil:
		text, next, as, sign = c.err.Error(), "", bad, t.bad
	case c.answer.Code != job.ExitOK:
		as, sign = bad, t.bad
	case text == "":
		text = "done"
	}
	out := []string{""}
	lead := sign + " "
	for _, line := range strings.Split(text, "\n") { // examples of a diff are lines of their own
		for _, part := range t.wrap(clean(line), width-6, 6) {
			out = append(out, "  "+t.paint(as, lead+part))
			lead = "  "
		}
	}
	if next != "" {
		label := "next     "
		out = append(out, "")
		for _, line := range t.wrap(clean(next), width-13, 3) {
			out = append(out, "  "+t.paint(dim, label)+line)
			label = "         "
		}
	}
	return out
}

package tui

import (
	"github.com/kappactl/kappactl/internal/job"
)

// helpPage is all keys, the signs, and what the verdicts mean where there is room: below, or at the right.
func (m *Model) helpPage(width, height int) []string {
	t := m.theme
	out := []string{""}
	for _, b := range m.bindings {
		if !b.Enabled() {
			continue
		}
		keys := b.Help().Key
		if t.rule == "-" {
			keys = asciiKeys(keys)
		}
		out = append(out, "  "+t.paint(strong, t.fit(keys, 12, false))+"  "+b.Help().Desc)
	}
	out = append(out, "  "+t.paint(strong, t.fit("ctrl-c", 12, false))+
		"  leave with exit code 130; ctrl-z suspends, ctrl-l redraws")
	signs := "  " + t.paint(live, t.live+" live") + "   " + t.paint(candidate, t.candidate+" candidate") + "   " +
		t.paint(standby, t.standby+" standby") +
		"   " + t.paint(warn, t.warn+" wants a look") + "   " + t.paint(bad, t.bad+" wants an act")
	out = append(out, "", signs)
	if !m.readOnly {
		asks := "  Acts ask for the job's name first, and show the command that does the same."
		if m.guarded != "" {
			asks = "  Acts ask for the job's name, then for the context's where readers could notice."
		}
		out = append(out, "", t.paint(dim, asks))
	}
	switch words := m.verdictHelp(); {
	case len(out)+len(words) < height:
		out = append(append(out, ""), words...)
	case width >= 150:
		const beside = 84
		for i, line := range words {
			if i+1 < len(out) {
				out[i+1] = t.fit(out[i+1], beside, false) + line
			}
		}
	}
	return out[:min(len(out), height)]
}

// verdictHelp explains the verdicts.
func (m *Model) verdictHelp() []string {
	t := m.theme
	var out []string
	for _, v := range job.Verdicts() {
		sign, as := t.verdictLook(v)
		out = append(out, "  "+t.paint(as, t.fit(sign+" "+verdictWords(v), 29, false))+"  "+meaning(v))
	}
	return out
}

// meaning is a verdict in a few words.
func meaning(v job.Verdict) string {
	switch v {
	case job.Unknown:
		return "nothing fresh is known; never taken for ready"
	case job.Unhealthy:
		return "cannot go on as it is: the reason says why"
	case job.Starting:
		return "not begun yet: queued, or no worker has taken it"
	case job.BlockedByTxn:
		return "a producer's open transaction holds records back"
	case job.Stalled:
		return "there is something to read, and nothing is read"
	case job.ReplayingRanges:
		return "reads the history that was there when it began"
	case job.NotConverging:
		return "behind, and no less than a minute ago"
	case job.Lagging:
		return "behind, and getting closer"
	case job.Holding:
		return "within its limits, not for long enough yet"
	case job.Ready:
		return "within its limits"
	}
	return ""
}

func asciiKeys(keys string) string {
	switch keys {
	case "↑ ↓  j k":
		return "up down j k"
	case "← →  h l":
		return "left right"
	}
	return keys
}

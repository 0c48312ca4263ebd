package tui

// helpPage is all keys.
func (m *Model) helpPage(height int) []string {
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
	signs := "  " + t.paint(live, t.live+" live") + "   " + t.paint(candidate, t.candidate+" candidate") + "   " + t.paint(standby, t.standby+" standby") +
		"   " + t.paint(warn, t.warn+" wants a look") + "   " + t.paint(bad, t.bad+" wants an act")
	out = append(out, "", signs)
	if !m.readOnly {
		out = append(out, "", t.paint(dim, "  Acts ask for the job's name first, and show the command that does the same."))
	}
	return out[:min(len(out), height)]
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

package tui

import "github.com/charmbracelet/x/ansi"

// prompt is one line that a person types. The cursor is at its end.
type prompt struct{ text string }

const longestPrompt = 200

// press takes a key and says whether it meant something here. typed is the text of a printable key.
func (p *prompt) press(name, typed string) bool {
	switch name {
	case "backspace", "ctrl+h":
		p.text = dropLast(p.text)
	case "ctrl+u":
		p.text = ""
	case "ctrl+w":
		p.text = dropWord(p.text)
	default:
		if typed == "" {
			return false
		}
		p.paste(typed)
	}
	return true
}

// paste adds text as if typed, without its control characters and line ends.
func (p *prompt) paste(text string) {
	if added := clean(text); text == " " || added != "" {
		if text == " " {
			added = " "
		}
		p.text = ansi.Truncate(p.text+added, longestPrompt, "")
	}
}

// dropLast removes the last character as people see it.
func dropLast(s string) string {
	return s[:len(s)-len(lastCluster(s))]
}

func lastCluster(s string) string {
	last := ""
	for len(s) > 0 {
		cluster, _ := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
		if cluster == "" {
			break
		}
		last, s = cluster, s[len(cluster):]
	}
	return last
}

func dropWord(s string) string {
	for s != "" && s[len(s)-1] == ' ' {
		s = s[:len(s)-1]
	}
	for s != "" && s[len(s)-1] != ' ' {
		s = dropLast(s)
	}
	return s
}

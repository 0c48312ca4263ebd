package postgres

import (
	"os"
	"strings"
)

// installHint returns how to install server binaries on this system.
func installHint(goos, release string) string {
	if goos == "darwin" {
		return "install PostgreSQL with: brew install postgresql@17"
	}
	for _, family := range [...]struct{ id, hint string }{
		{"debian", "install PostgreSQL with: sudo apt-get install postgresql"},
		{"ubuntu", "install PostgreSQL with: sudo apt-get install postgresql"},
		{"fedora", "install PostgreSQL with: sudo dnf install postgresql-server"},
		{"rhel", "install PostgreSQL with: sudo dnf install postgresql-server"},
		{"suse", "install PostgreSQL with: sudo zypper install postgresql-server"},
		{"arch", "install PostgreSQL with: sudo pacman -S postgresql"},
		{"alpine", "install PostgreSQL with: sudo apk add postgresql"},
	} {
		if strings.Contains(release, family.id) {
			return family.hint
		}
	}
	return "install the PostgreSQL server (15 or newer) with your system's package manager"
}

// osRelease returns ID and ID_LIKE of this Linux distribution, or "".
func osRelease() string {
	text, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return ""
	}
	var ids []string
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && (key == "ID" || key == "ID_LIKE") {
			ids = append(ids, strings.Trim(value, `"`))
		}
	}
	return strings.Join(ids, " ")
}

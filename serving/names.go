package serving

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// maxName is how many bytes of an identifier PostgreSQL keeps; it cuts the rest without an error.
const maxName = 63

// maxIndexColumns is PostgreSQL's limit of columns in one index.
const maxIndexColumns = 32

// ident quotes an identifier. pg.DB puts the control schema's name in place of "kappactl." in SQL texts, so a name that
// holds those characters is written with an escape that means the same.
func ident(name string) string {
	if !strings.Contains(name, pg.DefaultSchema+".") {
		return pg.Ident(name)
	}
	escaped := strings.ReplaceAll(pg.Ident(name), `\`, `\\`)
	return "U&" + strings.ReplaceAll(escaped, pg.DefaultSchema+".", pg.DefaultSchema+`\002e`)
}

func qualified(schema, name string) string { return ident(schema) + "." + ident(name) }

// relation is the quoted name of a version's table.
func relation(v job.Version) string { return qualified(v.Schema, v.Table()) }

// literal quotes a string constant.
func literal(s string) string {
	quoted := "'" + strings.ReplaceAll(s, "'", "''") + "'"
	if strings.Contains(s, `\`) {
		return " E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}

// keyIndex is the name of a table's unique index.
func keyIndex(table string) string { return shortened(table, "_key") }

// shortened is base and suffix within maxName bytes: a base that is too long is cut between characters and gets a hash,
// so that two names never become one.
func shortened(base, suffix string) string {
	if len(base)+len(suffix) <= maxName {
		return base + suffix
	}
	sum := sha256.Sum256([]byte(base))
	suffix = "_" + hex.EncodeToString(sum[:4]) + suffix
	cut := maxName - len(suffix)
	for cut > 0 && !utf8.RuneStart(base[cut]) {
		cut--
	}
	return base[:cut] + suffix
}

// checkNames refuses names that PostgreSQL would cut or cannot hold.
func checkNames(what string, names ...string) error {
	for _, name := range names {
		switch {
		case len(name) > maxName:
			return &job.Refusal{
				Code: job.ExitUsage,
				Cause: fmt.Sprintf("%s %q has %d bytes; PostgreSQL keeps %d of a name and would cut it", what, name, len(name),
					maxName),
				Next: "choose a shorter name",
			}
		case name == "" || strings.ContainsRune(name, 0) || !utf8.ValidString(name):
			return &job.Refusal{
				Code: job.ExitUsage,
				Cause: fmt.Sprintf("%s %q cannot be a name in PostgreSQL: it is empty, holds a NUL character or is not UTF-8",
					what, name),
				Next: "choose another name",
			}
		}
	}
	return nil
}

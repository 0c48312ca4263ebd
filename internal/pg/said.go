package pg

import (
	"errors"
	"regexp"
	"strings"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"
)

var plainIdentifier = regexp.MustCompile(`^[a-z_][a-z0-9_$]*$`)

// Said returns an error of PostgreSQL in its own words, with its hint. names are the columns that the refused SQL may
// use. If the error names an unknown column, Said lists those that need double quotes, because SQL folds unquoted names
// to lower case.
func Said(server *pgconn.PgError, names ...string) string {
	text := server.Message
	if server.Hint != "" {
		text += " (" + server.Hint + ")"
	}
	if server.Code != pgerrcode.UndefinedColumn {
		return text
	}
	var quoted []string
	for _, name := range names {
		if !plainIdentifier.MatchString(name) {
			quoted = append(quoted, Ident(name))
		}
	}
	if len(quoted) > 0 {
		text += "; these columns need double quotes: " + strings.Join(quoted, ", ")
	}
	return text
}

// Cause returns why a statement failed: PostgreSQL's message with details, hint, SQLSTATE and the function that raised
// it; for other errors the text.
func Cause(err error) string {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		return err.Error()
	}
	var b strings.Builder
	b.WriteString(server.Message)
	for _, more := range []string{server.Detail, server.Hint} {
		if more != "" {
			b.WriteString(" (" + more + ")")
		}
	}
	b.WriteString(" (SQLSTATE " + server.Code + ")")
	if in, _, _ := strings.Cut(server.Where, "\n"); strings.HasPrefix(in, "PL/") {
		b.WriteString(", in " + in)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

package pg_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kappactl/kappactl/internal/pg"
)

func TestAnUnknownColumnListsThoseThatNeedQuotes(t *testing.T) {
	unknown := &pgconn.PgError{Code: "42703", Message: `column "ordercount" does not exist`, Hint: "Perhaps you meant another."}
	for _, c := range []struct {
		err   *pgconn.PgError
		names []string
		want  string
	}{
		{unknown, nil, `column "ordercount" does not exist (Perhaps you meant another.)`},
		{unknown, []string{"day", "orders"}, `column "ordercount" does not exist (Perhaps you meant another.)`},
		{
			unknown,
			[]string{"day", "orderCount", `a "b"`},
			`column "ordercount" does not exist (Perhaps you meant another.); these columns need double quotes: "orderCount", "a ""b"""`,
		},
		{&pgconn.PgError{Code: "42601", Message: "syntax error"}, []string{"orderCount"}, "syntax error"},
	} {
		if got := pg.Said(c.err, c.names...); got != c.want {
			t.Errorf("%v: %s, want %s", c.names, got, c.want)
		}
	}
}

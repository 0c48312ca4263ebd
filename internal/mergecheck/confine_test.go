package mergecheck_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/mergecheck"
)

const reaching = `job: leaks
source:
  topics: [a]
  columns: {url: text}
query: SELECT url, count(*) AS n FROM source GROUP BY url
serve:
  view: public.leaks
  columns:
    twice: n * 2
    leak: n + (SELECT count(*) FROM pg_catalog.pg_authid)
  where: |
    n > 0
    AND url <> pg_read_file('/etc/hostname')
`

func TestWhatServeSQLReachesIsNamedWithItsPlace(t *testing.T) {
	d := deps(t)
	spec, c := compile(t, reaching)
	var ps job.Problems
	if err := mergecheck.Confine(t.Context(), d, spec, c); !errors.As(err, &ps) || len(ps) != 2 {
		t.Fatalf("got %v, want two problems", err)
	}
	for i, want := range []string{
		"job.yaml:10:48: serve.columns.leak: PostgreSQL SQL: it reads pg_catalog.pg_authid, which is not part of the job",
		"job.yaml:13:16: serve.where: PostgreSQL SQL: it calls pg_read_file(text), whose result depends on more than its arguments",
	} {
		if got := ps[i].String(); !strings.HasPrefix(got, want) || !strings.Contains(got, "fix: ") {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
	spec, c = compile(t, strings.Replace(reaching, "n * 2", "n *", 1))
	var refused *mergecheck.ServeError
	if err := mergecheck.Confine(t.Context(), d, spec, c); !errors.As(err, &refused) {
		t.Errorf("got %v, want a syntax error", err)
	}
}

func TestServeSQLCannotLeaveItsParentheses(t *testing.T) {
	for _, sql := range []string{"n) AS a, (1", "1); DROP TABLE x; --", "n -- (", "(n", "", "/* n", "'n"} {
		text := strings.Replace(reaching, "n * 2", `"`+sql+`"`, 1)
		spec, err := job.Parse("job.yaml", []byte(text))
		if sql == "n -- (" { // the comment ends with its line
			if err != nil {
				t.Errorf("%q: %v", sql, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%q was taken: %+v", sql, spec.Serve.Columns)
		}
	}
}

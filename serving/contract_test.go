package serving

import (
	"encoding/json"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// shape is a layout with these view columns: name, type, name, type …
func shape(columns ...string) job.Layout {
	l := job.Layout{Shape: job.Rollup}
	for i := 0; i < len(columns); i += 2 {
		l.View = append(l.View, job.ViewColumn{Name: columns[i], Type: columns[i+1]})
	}
	return l
}

func promised(columns ...string) json.RawMessage {
	var c Contract
	for i := 0; i < len(columns); i += 2 {
		c.Columns = append(c.Columns, Column{Name: columns[i], Type: columns[i+1]})
	}
	text, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return text
}

func TestCheckComparesTheCandidateWithTheContractByName(t *testing.T) {
	contract := promised("id", "integer", "name", "text", "code", "character varying(10)", "price", "numeric(10,2)")
	same := []string{"id", "integer", "name", "text", "code", "character varying(10)", "price", "numeric(10,2)"}
	for name, c := range map[string]struct {
		candidate job.Layout
		allow     bool
		code      job.ExitCode
		says      string
	}{
		"the same":             {candidate: shape(same...)},
		"another order":        {candidate: shape("price", "numeric(10,2)", "name", "text", "id", "integer", "code", "character varying(10)")},
		"renamed":              {candidate: shape("id", "integer", "title", "text", "code", "character varying(10)", "price", "numeric(10,2)"), allow: true, code: 6, says: `"name"`},
		"dropped":              {candidate: shape(same[:6]...), code: 6, says: `"price"`},
		"wider integer":        {candidate: shape("id", "bigint", "name", "text", "code", "character varying(10)", "price", "numeric(10,2)"), code: 6, says: `"id" would change from integer to bigint`},
		"wider varchar":        {candidate: shape("id", "integer", "name", "text", "code", "character varying(20)", "price", "numeric(10,2)"), code: 6, says: `"code"`},
		"wider numeric":        {candidate: shape("id", "integer", "name", "text", "code", "character varying(10)", "price", "numeric(12,2)"), code: 6, says: `"price"`},
		"added":                {candidate: shape(append(same, "extra", "bigint")...), code: 6, says: `"extra"`},
		"added, flag says how": {candidate: shape(append(same, "extra", "bigint")...), code: 6, says: "--allow-column-change"},
		"added and allowed":    {candidate: shape(append(same, "extra", "bigint")...), allow: true},
	} {
		t.Run(name, func(t *testing.T) {
			err := store.Check(contract, c.candidate, c.allow)
			if c.code == 0 {
				must(t, err)
				return
			}
			wantRefusal(t, err, c.code, c.says)
		})
	}
}

func TestCheckOfAFirstVersionPasses(t *testing.T) {
	must(t, store.Check(nil, shape("id", "integer"), false))
	must(t, store.Check(json.RawMessage("null"), shape("id", "integer"), false))
}

func TestCheckLetsAColumnGoThatTheLiveVersionLacksAnyway(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	wide := with(hits(), "extra", "bigint")
	made(t, pool, ref(1), hits(), "/a")
	made(t, pool, ref(2), wide, "/a")
	contract := switched(t, pool, to(1, hits(), nil))
	contract = switched(t, pool, to(2, wide, contract))
	wantRefusal(t, store.Check(contract, hits(), false), job.ExitConflict, `"extra"`)
	contract = switched(t, pool, to(1, hits(), contract))
	must(t, store.Check(contract, hits(), false))
	must(t, store.Check(contract, wide, false))
	wantRefusal(t, store.Check(contract, with(hits(), "extra", "text"), true), job.ExitConflict, `"extra" would change from bigint to text`)
}

func TestCreateRefusesAComputedColumnThatChangesItsType(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	computed := func(expr string) job.Layout {
		l := hits()
		l.View = append(l.View, job.ViewColumn{Name: "per_view", Computed: true, Finish: expr})
		return l
	}
	made(t, pool, ref(1), computed("total / nullif(views, 0)"), "/a")
	contract := switched(t, pool, to(1, computed("total / nullif(views, 0)"), nil))
	exec(t, pool, `INSERT INTO kappactl.job (name, view_schema, view_name, contract) VALUES ('hits', 'public', 'hits_by_url', $1)`, string(contract))
	must(t, store.Check(contract, computed("total::float8 / views"), false)) // not known without a database
	wantRefusal(t, store.Create(t.Context(), pool, version(ref(2), "public", computed("total::float8 / views"))), job.ExitConflict,
		`"per_view" would change from numeric to double precision`)
}

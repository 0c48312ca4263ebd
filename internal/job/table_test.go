package job_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
)

const programFile = `job: sessions
engine: program
source: {topics: [clicks]}
program: {command: [/opt/jobs/sessions, --gap, 30m]}
serve:
  view: public.sessions
  columns: {minutes: seconds / 60}
  indexes: [[seconds]]
  table: |
    %s
`

func TestTheTableOfAProgramIsItsLayout(t *testing.T) {
	s := parse(t, fmt.Sprintf(programFile, `create table $table (User_Id text, started timestamptz NOT NULL,
      price numeric(10, 2), "n" int8 not null, seconds int, -- a comment
      PRIMARY KEY (started, user_id));`))
	if s.Engine != job.ProgramRun || s.Program.Instances != 1 || s.Program.Commit != job.CommitTable || s.Program.Grace.Seconds() != 30 {
		t.Errorf("%+v", s.Program)
	}
	l, err := s.TableLayout()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, k := range l.Keys {
		got = append(got, "key "+k.Name+" "+k.Type)
	}
	for _, c := range l.States {
		got = append(got, c.Name+" "+c.Type)
	}
	for _, v := range l.View {
		got = append(got, fmt.Sprintf("view %s %s %s %t", v.Name, v.Type, v.Finish, v.Key))
	}
	want := []string{
		"key started timestamp with time zone", `key user_id text COLLATE "C"`, "price numeric(10,2)", "n bigint", "seconds integer",
		`view user_id text s."user_id" true`, `view started timestamp with time zone s."started" true`,
		`view price numeric(10,2) s."price" false`, `view n bigint s."n" false`, `view seconds integer s."seconds" false`,
		"view minutes  seconds / 60 false",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || l.Shape != job.Written {
		t.Errorf("%s layout:\n%s", l.Shape, strings.Join(got, "\n"))
	}
}

func TestATableThatIsNotOnlyColumnsIsRefused(t *testing.T) {
	for table, want := range map[string]string{
		"CREATE TABLE sessions (a int PRIMARY KEY)":                           `found "sessions" where $table is expected`,
		"CREATE TABLE $table (a int)":                                         "no PRIMARY KEY",
		"CREATE TABLE $table (a int PRIMARY KEY, b int PRIMARY KEY)":          "two PRIMARY KEYs",
		"CREATE TABLE $table (a int PRIMARY KEY, a int)":                      `column "a" occurs twice`,
		"CREATE TABLE $table (a int, PRIMARY KEY (b))":                        `names "b"`,
		"CREATE TABLE $table (a int, PRIMARY KEY (a, a))":                     `names "a" twice`,
		"CREATE TABLE $table (a int DEFAULT f() PRIMARY KEY)":                 `unknown type "int DEFAULT f ( )"`,
		"CREATE TABLE $table (a int CHECK (a > 0), PRIMARY KEY (a))":          "unknown type",
		"CREATE TABLE $table (a citext PRIMARY KEY)":                          `unknown type "citext"`,
		"CREATE TABLE $table (a int PRIMARY KEY) PARTITION BY LIST (a)":       `found "PARTITION" behind the definition`,
		"CREATE TABLE $table (a int PRIMARY KEY); DROP TABLE x":               `found "DROP" behind the definition`,
		"CREATE TABLE $table (a int PRIMARY KEY":                              "the text ends where ) is expected",
		"CREATE TABLE $table (LIKE other)":                                    "unknown type",
		"CREATE TABLE $table (_a int PRIMARY KEY)":                            "cannot be the name of a column",
		"CREATE TABLE $table (a int PRIMARY KEY, b int, c int, d int NOT a)":  `found "a" where NULL is expected`,
		"CREATE TABLE $table (a int, b int, PRIMARY KEY (a, c), seconds int)": `names "c"`,
	} {
		s := parse(t, fmt.Sprintf(programFile, table))
		_, err := s.TableLayout()
		var ps job.Problems
		if !errors.As(err, &ps) || !strings.Contains(ps[0].Cause, want) || ps[0].Line < 9 {
			t.Errorf("%s: %v, want %s", table, err, want)
		}
	}
}

func TestTheHashOfAProgramIsItsCommandTableAndCommit(t *testing.T) {
	file := fmt.Sprintf(programFile, "CREATE TABLE $table (a int PRIMARY KEY, seconds int)")
	plain := hashOf(t, file)
	for from, to := range map[string]string{"30m]}": "30m], instances: 4, grace: 5s}", "seconds / 60": "seconds / 61", "(a int": "(a  int"} {
		if hashOf(t, replace(t, file, from, to)) != plain {
			t.Errorf("%s changes the hash", to)
		}
	}
	for from, to := range map[string]string{"30m]": "31m]", "30m]}": "30m], commit: group}", "seconds int": "seconds bigint"} {
		if hashOf(t, replace(t, file, from, to)) == plain {
			t.Errorf("%s does not change the hash", to)
		}
	}
}

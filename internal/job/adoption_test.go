package job_test

import (
	"testing"

	"github.com/kappactl/kappactl/internal/job"
)

func TestTheAdoptCommandIsTypedAsAShellReadsIt(t *testing.T) {
	for want, view := range map[string]job.ViewName{
		`kappactl adopt a --view public.counts`:               {Schema: "public", Name: "counts"},
		`kappactl adopt a --view '"My Schema"."it''s"'`:       {Schema: "My Schema", Name: "it's"},
		`kappactl adopt a --view 'public."say ""hi"" $HOME"'`: {Schema: "public", Name: `say "hi" $HOME`},
	} {
		if view.Name == "it's" {
			want = `kappactl adopt a --view '"My Schema"."it'\''s"'`
		}
		if got := job.AdoptCommand("a", view); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/job/strict"
)

// DefaultHookTimeout bounds one run of a hook.
const DefaultHookTimeout = 30 * time.Second

// Hook is a command or an address that is told of events. Exactly one of Command and URL is set.
type Hook struct {
	Name    string          // unique among both kinds
	On      []job.HookEvent // empty: all
	Jobs    []string        // empty: all
	Command []string        // program and arguments
	URL     string
	Secret  Source // signs what goes to URL; none: not signed
	Timeout time.Duration
}

// hookSecret signs the webhooks that name no file.
const hookSecret = "KAPPACTL_WEBHOOK_SECRET" //nolint:gosec // a name

func hookKeys(to *[]Hook, web bool) strict.Value {
	return strict.Each(func() strict.Value {
		h := &Hook{}
		keys := []strict.Key{
			{Name: "name", Required: true, Value: strict.Text(&h.Name)},
			{Name: "on", Value: strict.Each(func() strict.Value {
				var on job.HookEvent
				return strict.Then(strict.OneOf(&on, job.HookEvents()...),
					func(*strict.Document, string) { h.On = append(h.On, on) })
			})},
			{Name: "jobs", Value: strict.Texts(&h.Jobs)},
			{Name: "timeout", Value: strict.Written("duration", &h.Timeout, within(time.Second, 10*time.Minute))},
		}
		if web {
			keys = append(keys, strict.Key{Name: "url", Required: true, Value: strict.Parsed("address", &h.URL, hookURL)},
				strict.Key{Name: "secret_file", Value: strict.Text(&h.Secret.File)})
		} else {
			keys = append(keys, strict.Key{Name: "command", Required: true, Value: strict.Texts(&h.Command)})
		}
		return strict.Then(strict.Mapping(keys...), func(d *strict.Document, path string) {
			if !web && len(h.Command) == 0 {
				d.RefuseAt(path+".command", "the command is empty", "write a program and its arguments: [/usr/local/bin/tell, now]")
			}
			*to = append(*to, *h)
		})
	})
}

func hookURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return "", strict.Want("it is no http or https address", "write https://HOST/PATH")
	}
	if u.User != nil {
		return "", strict.Want("the address holds a user or a password",
			"take it out; the signature says who sends (secret_file)")
	}
	return text, nil
}

// hookRules refuses two hooks of one name: deliveries are recorded under the name.
func (f *file) hookRules() {
	seen := map[string]bool{}
	for _, h := range f.common.Hooks {
		if seen[h.Name] {
			f.doc.RefuseAt("agent", fmt.Sprintf("two hooks are named %q", h.Name), "give each a name of its own")
		}
		seen[h.Name] = true
	}
}

// hooked takes over the hooks of the file, with the defaults and the secret of the environment.
func (s *Settings) hooked(f *file, e Env) {
	s.Hooks = slices.Clone(f.common.Hooks)
	for i := range s.Hooks {
		h := &s.Hooks[i]
		if h.Timeout == 0 {
			h.Timeout = DefaultHookTimeout
		}
		if h.URL != "" && h.Secret.IsZero() {
			h.Secret.Value = Secret(e.get(hookSecret))
		}
	}
}

// hookList is the hooks of one kind. They are shown by name; Write leaves those of the file alone.
func (s *Settings) hookList(web bool) value {
	return value{
		key: hookKeys(&s.Hooks, web),
		text: func() string {
			var names []string
			for _, h := range s.Hooks {
				if (h.URL != "") == web {
					names = append(names, h.Name)
				}
			}
			return strings.Join(names, ",")
		},
		write: func() any { return nil },
	}
}

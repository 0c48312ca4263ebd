package programs

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// passed lists the agent's environment variables that a program receives. Others may hold passwords.
func passed() []string {
	return []string{"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"}
}

// Modes of a process.
const (
	modeReplay = "replay" // up to KAPPACTL_END; it may end with 0 there
	modeLive   = "live"
)

func modeOf(i *item) string {
	if i.replaying() {
		return modeReplay
	}
	return modeLive
}

// environment is all that a process is told.
func (r *Runner) environment(i *item, group string, claim int64, owned []job.Owned) []string {
	var env []string
	for _, name := range passed() {
		if v := r.config.Env(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	starts, ends := map[string]int64{}, map[string]int64{}
	for _, o := range owned {
		starts[o.String()], ends[o.String()] = o.Next, max(o.Next, o.FrozenEnd)
	}
	end := ""
	if i.replaying() {
		end = offsetsText(ends)
	}
	for _, fact := range [][2]string{
		{"JOB", string(i.ref.Job)},
		{"VERSION", strconv.Itoa(int(i.ref.Number))},
		{"GROUP", group},
		{"TOPICS", strings.Join(i.spec.Source.Topics, ",")},
		{"BROKERS", strings.Join(r.config.Brokers, ",")},
		{"START", offsetsText(starts)},
		{"END", end},
		{"DSN", r.config.DSN},
		{"SCHEMA", cmp.Or(r.config.Schema, "kappactl")},
		{"TABLE", tableOf(i)},
		{"MODE", modeOf(i)},
		{"INSTANCE", strconv.Itoa(i.instance)},
		{"INSTANCES", strconv.Itoa(i.spec.Program.Instances)},
		{"CLAIM", strconv.FormatInt(claim, 10)},
	} {
		env = append(env, "KAPPACTL_"+fact[0]+"="+fact[1])
	}
	return env
}

// offsetsText are offsets by TOPIC/PARTITION as JSON, as kappactl.advance takes them.
func offsetsText(of map[string]int64) string {
	text, err := json.Marshal(of)
	if err != nil {
		panic("programs: offsets: " + err.Error()) // texts and integers always marshal
	}
	return string(text)
}

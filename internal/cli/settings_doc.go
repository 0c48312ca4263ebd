package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/config"
)

// settingTables writes the tables of docs/settings.md: what each setting means, and its flag and variable.
func settingTables() string {
	var b strings.Builder
	b.WriteString("| key | meaning | default |\n| --- | --- | --- |\n")
	for _, o := range config.Table() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", o.Name, o.Usage, cmp.Or(o.Default, "none"))
	}
	b.WriteString("\n| key | flag | variable |\n| --- | --- | --- |\n")
	for _, o := range config.Table() {
		if o.Flag == "" && o.Env == "" {
			continue
		}
		flag, variable := "", ""
		if o.Flag != "" {
			flag = "`--" + o.Flag + "`"
		}
		if o.Flag != "" && o.Serve {
			flag += " of `serve`"
		}
		if o.Env != "" {
			variable = "`" + o.Env + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", o.Name, flag, variable)
	}
	return b.String()
}

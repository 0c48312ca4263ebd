package reason

// Codes of what a comparison of two versions found.
const (
	CodeNoKeys      Code = "no_keys"
	CodeCompared    Code = "compared"
	CodeKeysChanged Code = "keys_changed"
	CodeKeysOnlyIn  Code = "keys_only_in"
	CodeKeysLimited Code = "keys_limited"
)

func checkDiffTexts() map[Code]string {
	return map[Code]string{
		CodeNoKeys: `no keys on either side`,
		CodeCompared: `{{list .together}} ({{percent .share}} of {{count .keys}}, allowed {{percent .limit}})` +
			`{{range .alone}}; {{text .}}{{end}}`,
		CodeKeysChanged: `{{plural .keys "key" "keys"}} changed`,
		CodeKeysOnlyIn:  `{{count .keys}} only in {{text .version}}`,
		CodeKeysLimited: `{{text .found}} ({{percent .share}}, allowed {{percent .limit}})`,
	}
}

// NoKeys is a comparison of two empty versions.
func NoKeys() Reason { return Reason{Code: CodeNoKeys} }

// KeysChanged is how many keys of both versions have other values.
func KeysChanged(keys int64) Reason { return Reason{CodeKeysChanged, Args{"keys": keys}} }

// KeysOnlyIn is how many keys only one version has.
func KeysOnlyIn(version string, keys int64) Reason {
	return Reason{CodeKeysOnlyIn, Args{"version": version, "keys": keys}}
}

// KeysLimited is a kind of difference with a limit of its own; share and limit are of all keys, 0 to 1.
func KeysLimited(found Reason, share, limit float64) Reason {
	return Reason{CodeKeysLimited, Args{"found": found, "share": share, "limit": limit}}
}

// Compared is the kinds of differences that count together, their share of all keys and its limit, and the kinds with
// limits of their own.
func Compared(together []Reason, share float64, keys int64, limit float64, alone []Reason) Reason {
	a := Args{"together": together, "share": share, "keys": keys, "limit": limit}
	if len(alone) > 0 {
		a["alone"] = alone
	}
	return Reason{CodeCompared, a}
}

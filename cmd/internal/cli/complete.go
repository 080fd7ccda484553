package cli

import (
	"flag"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// option is a flag as completion knows it.
type option struct {
	name   string // with its dashes
	values int    // words that follow it
	offer  string // what is offered for them, as bash: see offer
}

// script completes what is typed, and needs nothing but bash. What is in
// capitals with an @ before is filled in. Where nothing is offered, bash offers files.
const script = `# Completion of @NAME for bash, made of the text of @NAME --help.
_@NAME() {
	# As typed, for bash divides words at : and = too.
	local line=${COMP_LINE:0:COMP_POINT} words operands=() option= i=1
	read -ra words <<<"$line"
	[[ $line != *[[:space:]] ]] || words+=('')
	local last=$((${#words[@]} - 1))
	while ((i < last)); do
		option=
		case ${words[i]/#--/-} in
		-*=*) ;;@VALUED
		-*) ;;@AGAIN
		*) operands+=("${words[i]}") ;;
		esac
		i=$((i + 1))
	done
	((i > last)) || option= # its values are all there
	local value=${words[last]} offer=
	if [[ -z $option && $value == -*=* ]]; then
		option=${value%%=*} value=${value#*=}
	fi
	case ${option/#--/-} in
	'')
		case $value:${#operands[@]}:${operands[0]} in
		-*@ALL) offer='@OPTIONS' ;;@OPERANDS
		esac ;;@OFFERS
	esac
	COMPREPLY=($(compgen -W "$offer" -- "$value"))
	# What stands before a colon is typed already, and bash keeps it.
	[[ $COMP_WORDBREAKS != *:* ]] || COMPREPLY=("${COMPREPLY[@]#"${value%"${value##*:}"}"}")
}
complete -o bashdefault -o default -F _@NAME @NAME
`

// Completion returns what completes the command's options, their values and its
// operands in bash.
func (p Page) Completion() string {
	usage, sections := p.parse()
	options := p.options(sections)
	var names []string
	valued, offers := map[string][]string{}, map[string][]string{}
	for _, o := range append(options, option{name: "--help"}, option{name: "--version"}) {
		if slices.Contains(names, o.name) {
			continue
		}
		names = append(names, o.name)
		single := "-" + strings.TrimLeft(o.name, "-")
		if o.values > 0 {
			steps := "option=${words[i]} i=$((i + " + string(rune('0'+o.values)) + "))"
			valued[steps] = append(valued[steps], single)
		}
		if o.values > 0 && o.offer != "" {
			offers["offer="+o.offer] = append(offers["offer="+o.offer], single)
		}
	}
	again, all := "", ""
	if strings.Contains(strings.Join(usage, " "), "ARGS") { // what follows the first operand is another program's
		again, all = "\n\t\t:) operands=() ;;", ":0:*"
	}
	return strings.NewReplacer(
		"@NAME", p.Name,
		"@VALUED", cases("\t\t", valued),
		"@AGAIN", again,
		"@ALL", all,
		"@OPTIONS", strings.Join(names, " "),
		"@OPERANDS", operands(p.Name, usage, sections, options),
		"@OFFERS", cases("\t", offers),
	).Replace(script)
}

// cases returns the branches of a case statement that do the keys.
func cases(indent string, patterns map[string][]string) string {
	var b strings.Builder
	for _, does := range slices.Sorted(maps.Keys(patterns)) {
		b.WriteString("\n" + indent + strings.Join(patterns[does], " | ") + ") " + does + " ;;")
	}
	return b.String()
}

// options returns what the flags are called, and what the help says of them.
func (p Page) options(sections []*section) []option {
	described := map[string]option{}
	for _, s := range sections {
		for _, b := range s.blocks {
			for _, o := range row(b, sections) {
				described[strings.TrimLeft(o.name, "-")] = o
			}
		}
	}
	var all []option
	p.Flags.VisitAll(func(f *flag.Flag) {
		o, ok := described[f.Name]
		if !ok { // an old name of another
			o.name = "-" + f.Name
			if regexp.MustCompile(`(^|[^\w-])-` + regexp.QuoteMeta(o.name) + `\b`).MatchString(p.Help) {
				o.name = "-" + o.name
			}
		}
		if isBool, ok := f.Value.(interface{ IsBoolFlag() bool }); ok && isBool.IsBoolFlag() {
			o.values = 0
		} else {
			o.values = max(o.values, 1)
		}
		all = append(all, o)
	})
	return all
}

// row returns the options that a row of the help describes: the values of the
// last one are those of all.
func row(b block, sections []*section) []option {
	if !strings.HasPrefix(b.term, "-") {
		return nil
	}
	term, _, _ := strings.Cut(b.term, " (")
	var found []option
	for _, form := range slices.Backward(strings.Split(term, ", ")) {
		words := strings.Fields(form)
		o := option{name: words[0], values: len(words) - 1}
		if o.values > 0 {
			o.offer = offer(words[1], b.text, sections)
		} else if len(found) > 0 {
			o.values, o.offer = found[0].values, found[0].offer
		}
		found = append(found, o)
	}
	return found
}

// operands returns the branches that offer words where no option is meant, for
// "WORD:NUMBER:FIRST", the operands so far. The lines of usage tell what they are.
func operands(name string, usage []string, sections []*section, options []option) string {
	var first []string
	var exact, others string
	for _, form := range usage {
		words := operandsOf(strings.TrimPrefix(form, name), options)
		if len(words) == 0 {
			continue
		}
		first = append(first, strings.Trim(offer(words[0], "", sections), "'\""))
		second := ""
		if len(words) > 1 {
			second = offer(words[1], "", sections)
		}
		if words[0] == strings.ToLower(words[0]) {
			exact += "\n\t\t*:1:" + words[0] + ") offer=" + second + " ;;"
		} else if second != "" {
			others += "\n\t\t*:1:*) offer=" + second + " ;;"
		}
	}
	if from := strings.TrimSpace(strings.Join(first, " ")); from != "" {
		others += "\n\t\t*:0:*) offer=\"" + from + "\" ;;"
	}
	return exact + others
}

// operandsOf returns what a line of usage has besides options. One that can be
// repeated is there twice.
func operandsOf(form string, options []option) []string {
	var words []string
	fields := strings.Fields(strings.NewReplacer("[", " ", "]", " ", "|", " ").Replace(form))
	for i := 0; i < len(fields); i++ {
		at := slices.IndexFunc(options, func(o option) bool { return o.name == fields[i] })
		switch {
		case at >= 0:
			i += options[at].values
		case fields[i][0] != '-' && fields[i] != "OPTIONS" && fields[i] != "FLAGS":
			if words = append(words, fields[i]); strings.HasSuffix(fields[i], "...") {
				words = append(words, fields[i])
			}
		}
	}
	return words
}

// offer returns the words that stand for what, which the help calls DEV or TEST
// or writes out. Of an option, text describes it. "" is for files and numbers.
func offer(what, text string, sections []*section) string {
	what = strings.TrimSuffix(what, "...")
	if what == strings.ToLower(what) {
		return "'" + what + "'"
	}
	if words := alternatives(text); words != nil {
		return "'" + strings.Join(words, " ") + "'"
	}
	switch what {
	case "DEV":
		return `"$(cd /sys/class/net && echo *)"`
	case "HOST":
		return `"$(compgen -A hostname)"`
	case "PROGRAM":
		return `"$([[ -z $value || $value == */* ]] || compgen -c -- "$value")"`
	}
	for _, s := range sections {
		if title := strings.ToUpper(s.title); title == what+"S" || strings.HasPrefix(title, what+"S ") {
			var words []string
			for _, b := range s.blocks {
				words = append(words, b.term)
			}
			return "'" + strings.Join(words, " ") + "'"
		}
	}
	return ""
}

var (
	aside = regexp.MustCompile(`\s*\([^()]*\)`)
	start = regexp.MustCompile(`^|: `)
	among = regexp.MustCompile(`^[a-z][\w:-]*(?:(?:,| or|, or) [a-z][\w:-]*)+(?:$|[.;]|, or )`)
	comma = regexp.MustCompile(`, or |, | or `)
)

// alternatives returns the words that a value may be, where the text lists them:
// "which one: this (the default), that or another".
func alternatives(text string) []string {
	text = strings.Join(strings.Fields(aside.ReplaceAllString(text, "")), " ")
	for _, m := range start.FindAllStringIndex(text, -1) {
		if list := among.FindString(text[m[1]:]); list != "" {
			return comma.Split(strings.TrimSuffix(strings.TrimRight(list, ".;"), ", or "), -1)
		}
	}
	return nil
}

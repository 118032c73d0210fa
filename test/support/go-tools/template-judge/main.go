// Command template-judge renders templates with Go's text/template and the functions of Helm, so that tests can compare.
//
// It reads requests as lines of JSON and answers each one with a line of JSON. With the argument unicode-tables it
// prints src/platform/traits/template/unicode-tables.ts.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"
)

type request struct {
	Name     string          `json:"name"`
	Template string          `json:"template"`
	Data     json.RawMessage `json:"data"`
}

// answer has the text, whose bytes may be no UTF-8, or the step that failed.
type answer struct {
	Text    []byte `json:"text"`
	Failed  string `json:"failed,omitempty"`
	Message string `json:"message,omitempty"`
}

const maxOutput = 4 << 20

func main() {
	if len(os.Args) > 1 && os.Args[1] == "unicode-tables" {
		printTables()
		return
	}
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(output)
	for {
		line, err := input.ReadBytes('\n')
		if len(line) == 0 && err != nil {
			return
		}
		var asked request
		if err := json.Unmarshal(line, &asked); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := encoder.Encode(render(asked)); err != nil {
			os.Exit(1)
		}
		// Whoever waits for the answer has nothing else to send.
		if input.Buffered() == 0 {
			output.Flush()
		}
	}
}

func render(asked request) (result answer) {
	defer func() {
		if reason := recover(); reason != nil {
			result = answer{Failed: "execution", Message: fmt.Sprint("panic: ", reason)}
		}
	}()
	data, err := readValue(asked.Data)
	if err != nil {
		return answer{Failed: "data", Message: err.Error()}
	}
	parsed, err := template.New(asked.Name).Option("missingkey=error").Funcs(functions()).Parse(asked.Template)
	if err != nil {
		return answer{Failed: "parse", Message: err.Error()}
	}
	var output limited
	if err := parsed.Execute(&output, data); err != nil {
		return answer{Failed: "execution", Message: err.Error()}
	}
	return answer{Text: output.Bytes()}
}

type limited struct{ bytes.Buffer }

func (output *limited) Write(piece []byte) (int, error) {
	if output.Len()+len(piece) > maxOutput {
		return 0, errors.New("the output is too long for the judge")
	}
	return output.Buffer.Write(piece)
}

// readValue reads numbers as the API machinery of Kubernetes does: an integer is an int64 if it fits.
func readValue(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if decoder.More() {
		return nil, errors.New("more than one value")
	}
	return withNumbers(value)
}

func withNumbers(value any) (any, error) {
	var err error
	switch value := value.(type) {
	case json.Number:
		return numberOf(value)
	case []any:
		for index, item := range value {
			if value[index], err = withNumbers(item); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for key, item := range value {
			if value[key], err = withNumbers(item); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

func numberOf(number json.Number) (any, error) {
	if !strings.ContainsAny(number.String(), ".eE") {
		if integer, err := strconv.ParseInt(number.String(), 10, 64); err == nil {
			return integer, nil
		}
	}
	return number.Float64()
}

// functions are those of sprig and of Helm, but for fromJson, which has one rule for numbers with the data.
func functions() template.FuncMap {
	all := sprig.TxtFuncMap()
	chosen := template.FuncMap{
		"required": required,
		"toJson":   toJSON,
		"toYaml":   toYAML,
		"fromJson": func(text string) (any, error) { return readValue([]byte(text)) },
	}
	for _, name := range []string{
		"b64enc", "b64dec", "quote", "default", "indent", "nindent", "upper", "lower", "trim", "replace", "split",
		"join", "list", "dict", "hasKey", "sha256sum",
	} {
		chosen[name] = all[name]
	}
	return chosen
}

// required, toJSON and toYAML are those of Helm's engine.
func required(message string, value any) (any, error) {
	if value == nil {
		return value, errors.New(message)
	}
	if text, ok := value.(string); ok && text == "" {
		return value, errors.New(message)
	}
	return value, nil
}

func toJSON(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(data)
}

func toYAML(value any) string {
	data, err := yaml.Marshal(value)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(data), "\n")
}

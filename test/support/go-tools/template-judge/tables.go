package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

const lineLength = 100

func printTables() {
	fmt.Printf("// Tables of Unicode %s as Go has it, printed by the Go program in\n", unicode.Version)
	fmt.Printf("// test/support/go-tools/template-judge with the argument unicode-tables; a test compares the two.\n")
	printTable("Distances between the first and last codes of the ranges of letters.", "LETTERS", ranges(unicode.IsLetter))
	printTable("Distances of the ranges of digits.", "DIGITS", ranges(unicode.IsDigit))
	printTable("Distances of the ranges of characters that Go prints as they are.", "PRINTABLE", ranges(unicode.IsPrint))
	printTable("First code, length, and distances to the upper and lower case.", "CASES", cases())
}

// ranges has, for each range above ASCII, the distances to its first and last code from the number in front.
func ranges(is func(rune) bool) []string {
	var words []string
	former := rune(0)
	add := func(code rune) {
		words = append(words, strconv.FormatInt(int64(code-former), 16))
		former = code
	}
	inside := false
	for code := rune(0x80); code <= unicode.MaxRune+1; code++ {
		if now := code <= unicode.MaxRune && is(code); now != inside {
			if inside {
				add(code - 1)
			} else {
				add(code)
			}
			inside = now
		}
	}
	return words
}

func cases() []string {
	var words []string
	for _, entry := range unicode.CaseRanges {
		numbers := []int64{int64(entry.Lo), int64(entry.Hi - entry.Lo)}
		if upper := entry.Delta[unicode.UpperCase]; upper <= unicode.MaxRune {
			numbers = append(numbers, int64(upper), int64(entry.Delta[unicode.LowerCase]))
		}
		texts := make([]string, len(numbers))
		for index, number := range numbers {
			texts[index] = strconv.FormatInt(number, 16)
		}
		words = append(words, strings.Join(texts, ","))
	}
	return words
}

func printTable(comment, name string, words []string) {
	fmt.Printf("\n/** %s */\nexport const %s =\n", comment, name)
	line := ""
	for index, word := range words {
		line += word
		if index == len(words)-1 {
			fmt.Printf("  '%s';\n", line)
			return
		}
		line += " "
		if len(line) >= lineLength {
			fmt.Printf("  '%s' +\n", line)
			line = ""
		}
	}
}

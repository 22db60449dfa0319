// SPDX-License-Identifier: MIT
// Functions with arguments of each kind, and goroutines that know their own numbers.
package main

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

type point struct{ x, y int }
type shape interface{ area() int }

func (p *point) area() int { return p.x * p.y }

//go:noinline
func numbers(a int, b int32, c uint8, f float64, ok bool) int { return a + int(b) + int(c) + int(f) }

//go:noinline
func lists(s string, t []int, m map[string]int) int { return len(s) + len(t) + len(m) }

//go:noinline
func pointers(p *point, q point, e error, sh shape) (sum int, err error) { return p.x + q.y + sh.area(), e }

//go:noinline
func who(id int) int { return number() - id }

// The runtime tells a goroutine's number only in a text: "goroutine 7 [running]: ...".
func number() int {
	text := make([]byte, 64)
	n, _ := strconv.Atoi(strings.Fields(string(text[:runtime.Stack(text, false)]))[1])
	return n
}

func main() {
	p := &point{3, 4}
	sum := numbers(-1, -3, 200, 2.5, true) + lists("hello", []int{10, 20, 30}, map[string]int{"a": 1, "b": 2})
	other, _ := pointers(p, point{5, 6}, errors.New("none"), p)
	var wg sync.WaitGroup
	strange := 0
	for i := 0; i < 50; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for k := 0; k < 20; k++ {
				strange += who(number())
				runtime.Gosched()
			}
		}()
	}
	wg.Wait()
	fmt.Println(sum + other + strange)
}

// SPDX-License-Identifier: MIT
pub struct Request {
    uri: String,
    id: u32,
}

#[inline(never)]
#[no_mangle]
pub fn handle(r: &Request, method: &str, body: &[u8]) -> usize {
    std::hint::black_box(r.uri.len() + method.len() + body.len())
}

#[inline(never)]
#[no_mangle]
pub fn perhaps(first: &str, second: Option<&str>, body: &[u8]) -> usize {
    std::hint::black_box(first.len() + second.map_or(0, |s| s.len()) + body.len())
}

fn main() {
    std::hint::black_box(perhaps("first", None, b"body"));
    let r = Request { uri: String::from("/index.html"), id: 7 };
    println!("{} {}", handle(&r, &"GET /index"[..3], b"body"), r.id);
}

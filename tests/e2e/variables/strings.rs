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

fn main() {
    let r = Request { uri: String::from("/index.html"), id: 7 };
    println!("{} {}", handle(&r, &"GET /index"[..3], b"body"), r.id);
}

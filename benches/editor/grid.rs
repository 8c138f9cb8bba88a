//! The screen's text, from `ext_linegrid` events. What is not ASCII is a question mark.

use rmpv::Value;

pub(super) struct Grid {
    rows: Vec<Vec<u8>>,
}

impl Grid {
    pub(super) fn new(columns: usize, rows: usize) -> Self {
        Self {
            rows: vec![vec![b' '; columns]; rows],
        }
    }

    pub(super) fn text(&self) -> String {
        let rows = self.rows.iter().map(|row| String::from_utf8_lossy(row));
        rows.fold(String::new(), |text, row| text + row.trim_end() + "\n")
    }

    /// Takes one `redraw`; returns whether it ends a frame.
    pub(super) fn redraw(&mut self, events: &[Value]) -> bool {
        let mut flushed = false;
        for event in events.iter().filter_map(Value::as_array) {
            let name = event.first().and_then(Value::as_str).unwrap_or_default();
            for args in event.iter().skip(1).filter_map(|args| args.as_array()) {
                match name {
                    "grid_clear" => self.rows.iter_mut().for_each(|row| row.fill(b' ')),
                    "grid_line" => self.line(args),
                    "grid_scroll" => self.scroll(args),
                    "flush" => flushed = true,
                    _ => {}
                }
            }
        }
        flushed
    }

    /// `grid, row, column, [[text, highlight?, repeat?], …]`.
    fn line(&mut self, args: &[Value]) {
        let Some(row) = self.rows.get_mut(number(args, 1)) else {
            return;
        };
        let mut column = number(args, 2);
        for cell in args.get(3).and_then(Value::as_array).into_iter().flatten() {
            let cell = cell.as_array().map_or(&[][..], Vec::as_slice);
            let byte = match cell.first().and_then(Value::as_str).map(str::as_bytes) {
                Some([byte]) => *byte,
                _ => b'?',
            };
            let repeat = cell.get(2).and_then(Value::as_u64).unwrap_or(1);
            for _ in 0..repeat {
                if let Some(place) = row.get_mut(column) {
                    *place = byte;
                }
                column += 1;
            }
        }
    }

    /// `grid, top, bottom, left, right, rows, columns`: rows move up where `rows` is positive.
    fn scroll(&mut self, args: &[Value]) {
        let (top, bottom) = (number(args, 1), number(args, 2).min(self.rows.len()));
        let (left, right) = (number(args, 3), number(args, 4));
        let by = args.get(5).and_then(Value::as_i64).unwrap_or(0);
        let old = self.rows.clone();
        for row in top..bottom {
            let from = usize::try_from(row as i64 + by).ok();
            if let Some(from) = from.filter(|from| (top..bottom).contains(from)) {
                self.rows[row][left..right].copy_from_slice(&old[from][left..right]);
            }
        }
    }
}

fn number(args: &[Value], at: usize) -> usize {
    let number = args.get(at).and_then(Value::as_u64).unwrap_or(0);
    usize::try_from(number).unwrap_or(usize::MAX)
}

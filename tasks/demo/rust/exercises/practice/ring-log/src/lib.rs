#[derive(Debug, PartialEq, Eq)]
pub enum LogError {
    NoRoom,
    EmptyLine,
}

#[derive(Debug)]
pub struct RingLog {}

impl RingLog {
    pub fn new(capacity: usize) -> Result<Self, LogError> {
        todo!("make a log with room for {capacity} entries");
    }

    pub fn push(&mut self, line: &str) -> Result<(), LogError> {
        todo!("add the line {line}");
    }

    pub fn lines(&self) -> Vec<String> {
        todo!("return the entries, oldest first");
    }

    pub fn pushed(&self) -> usize {
        todo!("return how many lines were added");
    }

    pub fn dropped(&self) -> usize {
        todo!("return how many lines are no longer there");
    }

    pub fn latest(&self, start: &str) -> Option<&str> {
        todo!("return the newest line which begins with {start}");
    }
}

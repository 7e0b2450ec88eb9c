"""What tests share: exercises, servers, engines, programs under test, runs made by hand."""

# Checks that the engine's man page has what `pgwarp-engine --help` prints: check_man.pl ROOT. Each option of
# src/engine/server/options.cpp stands in docs/man/pgwarp-engine.1 with its description, in the same order, and no other does.
# Prints what differs, and fails then.
use strict;
use warnings;

my ($root) = @ARGV;

sub text_of
{
	my ($file) = @_;
	open my $in, '<', "$root/$file" or die "$file: $!\n";
	local $/ = undef;
	return <$in>;
}

# Options of the parser, as "--name description". The parser itself adds the first.
my $source = text_of('src/engine/server/options.cpp');
my @options = '--help Print this help message and exit';
while ($source =~ /add_option\(\s*"(--[\w-]+)",\s*[\w.]+,\s*"([^"]*)"/g)
{
	push @options, "$1 $2";
}
my $added = () = $source =~ /add_(?:option|flag)/g;

# The page's, without the macros of man and the settings that it names.
my $page = text_of('docs/man/pgwarp-engine.1') =~ s/\\-/-/gr;
my @described;
while ($page =~ /^\.TP\n\.B[IR] ([^\n]*--[^\n]*)\n([^\n]*)\n/mg)
{
	my ($names, $text) = ($1, $2);
	push @described, ($names =~ /(--[\w-]+)/)[0] . " $text";
}

my ($about) = $source =~ /CLI::App app\{"([^"]*)"\}/;
$about =~ s/: / - /;
my $bad = 0;
if ($added != $#options) { $bad = 1; print "options.cpp: an option that this check cannot read\n"; }
if (join("\n", @options) ne join("\n", @described))
{
	$bad = 1;
	print "pgwarp-engine --help:\n", map({ "  $_\n" } @options), "docs/man/pgwarp-engine.1:\n", map { "  $_\n" } @described;
}
if (index($page, $about) < 0) { $bad = 1; print "docs/man/pgwarp-engine.1 does not say: $about\n"; }
exit $bad;

# Checks that pages of the docs show what tests have run: check_statements.pl ROOT. Of each page below, every statement stands in the regression
# tests whose names begin with the page's, and every plan in what they are expected to print. Prints what does not, and fails then.
use strict;
use warnings;

my ($root) = @ARGV;
chdir $root or die "$root: $!\n";
my @pages = qw(hybrid);
my $bad = 0;

# The files' text with one space for each gap.
sub words_of
{
	my $text = '';
	for my $file (@_)
	{
		open my $in, '<', $file or die "$file: $!\n";
		local $/ = undef;
		$text .= <$in> . "\n";
	}
	return $text;
}

sub spaced { return $_[0] =~ s/\s+/ /gr =~ s/^ | $//gr }
sub without_comments { return $_[0] =~ s/--(?= ).*$//gmr }

for my $page (@pages)
{
	my @tests = glob "sql/${page}*.sql";
	my $statements = spaced(without_comments(words_of(@tests)));
	my $output = spaced(words_of(glob "expected/${page}*.out"));
	my $text = words_of("docs/$page.md");
	while ($text =~ /^( *)```(\w*)\n(.*?)^\1```/gms)
	{
		my ($language, $block) = ($2, $3);
		my @missing = $language eq 'sql'
		  ? grep { index($statements, $_) < 0 } map { spaced($_) . ';' } grep { /\S/ } split /;\s*$/m, without_comments($block)
		  : grep { index($output, $_) < 0 } spaced($block);
		print "docs/$page.md: no test has: $_\n" for @missing;
		$bad ||= @missing > 0;
	}
}
exit $bad;

# Checks the navigation of the site of the docs: check_nav.pl ROOT. Each Markdown file of docs/ is in the nav of mkdocs.yml once, and each page of
# the nav is a file. Prints a line for each that is not, and fails then.
use strict;
use warnings;

my ($root) = @ARGV;
chdir $root or die "$root: $!\n";
open my $in, '<', 'mkdocs.yml' or die "mkdocs.yml: $!\n";
my %entries;
my $in_nav = 0;
while (my $line = <$in>)
{
	$in_nav = $line =~ /^nav:/ if $line =~ /^\w/;
	$entries{$1}++ if $in_nav && $line =~ /^\s+- .*?([\w.\/-]+\.md)\s*$/;
}
my $bad = 0;
for my $page (map { s{^\./}{}r } split /\n/, `find docs -name '*.md'`)
{
	print "mkdocs.yml: its nav lacks $page\n" and $bad = 1 unless $entries{$page};
}
for my $page (sort keys %entries)
{
	print "mkdocs.yml: no $page\n" and $bad = 1 unless -f $page;
	print "mkdocs.yml: its nav has $page twice\n" and $bad = 1 if $entries{$page} > 1;
}
exit $bad;

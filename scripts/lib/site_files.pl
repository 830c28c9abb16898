# Prints the files that the site of the docs has: the Markdown files of the tree, and the files that these link to.
use strict;
use warnings;
use File::Basename qw(dirname);

my %files;
for my $page (grep { !m{^(build|tmp_check)/} } map { s{^\./}{}r } split /\n/, `find . -name '*.md' -not -path './.git/*'`)
{
	$files{$page} = 1;
	open my $in, '<', $page or die "$page: $!\n";
	local $/ = undef;
	my $text = <$in> =~ s/^```.*?^```//gmsr;
	while ($text =~ /\]\(([^)\s#]+)[^)]*\)/g)
	{
		next if $1 =~ /^\w+:/;
		my @parts;
		for my $part (split m{/}, dirname($page) . "/$1")
		{
			next if $part eq '.' || $part eq '';
			if ($part eq '..') { pop @parts; }
			else { push @parts, $part; }
		}
		my $target = join '/', @parts;
		$files{$target} = 1 if -f $target;
	}
}
print "$_\n" for sort keys %files;
